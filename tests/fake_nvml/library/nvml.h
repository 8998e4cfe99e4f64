/* The part of NVML's binary interface that the fake speaks: codes and record layouts. */
#ifndef NVML_H
#define NVML_H

#include <stdint.h>

typedef int nvmlReturn_t;
typedef struct Gpu *nvmlDevice_t;
typedef struct EventSet *nvmlEventSet_t;
typedef struct GpmSample *nvmlGpmSample_t;

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
    NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13, CORRUPTED_INFOROM = 14, GPU_IS_LOST = 15, NO_MEMORY = 20, ARGUMENT_VERSION_MISMATCH = 25,
    NOT_READY = 27, UNKNOWN = 999,
};

#define NO_INSTANCE 0xFFFFFFFFu /* a process outside MIG */

/* A versioned record carries its size and its version in the first word. */
#define VERSION_OF(type, number) ((unsigned)(sizeof(type) | ((unsigned)(number) << 24)))

typedef struct { uint64_t total, free, used; } Memory;
typedef struct { unsigned version; uint64_t total, reserved, free, used; } MemoryV2;
typedef struct { uint64_t total, free, used; } Bar1;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { uint64_t reference, violation; } ViolationTime;

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;
typedef struct {
    char bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id, reserved[4];
} PciInfoV2;
typedef struct {
    unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
} PciInfoExt;

typedef struct { unsigned pid; uint64_t memory; } ProcessV1;
typedef struct { unsigned pid; uint64_t memory; unsigned gi, ci; } ProcessV2;
/* Drivers 535.43 to 535.86 answered _v3 with this longer record. */
typedef struct { unsigned pid; uint64_t memory; unsigned gi, ci; uint64_t protected_memory; } ProcessV3;
typedef struct { unsigned version, mode, count; ProcessV3 *records; } ProcessDetailList;

typedef struct { unsigned pid; uint64_t time; unsigned sm, mem, enc, dec; } ProcessSample;
typedef struct { uint64_t time; unsigned pid, sm, mem, enc, dec, jpg, ofa; } ProcessSampleV2;
typedef struct { unsigned version, count; uint64_t last_seen; ProcessSampleV2 *records; } ProcessSampleList;

typedef union { double real; unsigned u32; uint64_t u64; int64_t s64; int s32; } AnyValue;
enum { TYPE_DOUBLE = 0, TYPE_U32 = 1, TYPE_U64 = 3, TYPE_S64 = 4, TYPE_S32 = 5 };
typedef struct { uint64_t time; AnyValue value; } Sample;
typedef struct {
    unsigned field, scope;
    int64_t time, latency;
    int type;
    nvmlReturn_t status;
    AnyValue value;
} FieldValue;

typedef struct { nvmlDevice_t device; uint64_t type, data; unsigned gi, ci; } EventData;

typedef struct { const char *short_name, *long_name, *unit; } GpmMetricInfo;
typedef struct { unsigned id; nvmlReturn_t status; double value; GpmMetricInfo info; } GpmMetric;
typedef struct {
    unsigned version, count;
    nvmlGpmSample_t first, second;
    GpmMetric metrics[]; /* the caller's header decides how many fit; count says how many are asked */
} GpmMetricsGet;
typedef struct { unsigned version, supported; } GpmSupport;

typedef struct {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gi_slices, ci_slices;
    uint64_t memory_mb;
} Attributes;
typedef struct {
    unsigned version, id, p2p, slices, total, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mb;
    char name[96];
} MigProfile;
typedef struct {
    unsigned gpu, memory;
    uint64_t max_memory, time, start;
    unsigned running, reserved[5];
} AccountingStats;
typedef struct { unsigned max, high, partial, low, none; } RemapHistogram;
typedef struct { uint64_t l1, l2, memory, registers; } EccCounts;
typedef struct { unsigned version, sensor; int temperature; } TemperatureV;
typedef struct { unsigned version; int margin; } MarginTemperature;
typedef struct { unsigned version, value; } VersionedUint;
typedef struct { unsigned version; uint64_t value; } VersionedUlong;
typedef struct { unsigned version, fan, speed; } FanSpeedInfo;
typedef struct { unsigned version, first, second; } VersionedPair;
typedef struct { unsigned version; char text[2048]; } ClockText;
typedef struct { unsigned version; char branch[80]; } DriverBranch;
typedef struct { unsigned present, percentage, increase, decrease; } PstateUtilization;
typedef struct { unsigned flags; PstateUtilization utilization[8]; } DynamicPstates;
typedef struct { unsigned sessions, fps, latency; } FbcStats;
typedef struct {
    unsigned version;
    uint8_t guid[16];
    char chassis[16];
    uint8_t slot, tray, host, peer, module;
} PlatformInfo;
typedef struct {
    unsigned version;
    uint8_t cluster[16];
    unsigned status, clique;
    uint8_t state;
    unsigned health;
    uint8_t summary; /* since version 3 */
} FabricInfo;
typedef struct {
    unsigned version;
    uint64_t aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded, volatile_corrected;
    uint64_t l2, sm, pcie, mcu, other;
    unsigned exceeded;
} SramStatus;
typedef struct { unsigned corrected, corrected_inactive, uncorrected, uncorrected_inactive, pending, failure; } RemappedRowsV2;

#endif
