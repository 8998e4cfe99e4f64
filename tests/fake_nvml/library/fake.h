/* What the files of the fake driver share: scripted values, GPUs, faults and the door every call enters by. */
#ifndef FAKE_H
#define FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nvml.h"

#define EXPORT __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { MAX_GPUS = 256, MAX_INSTANCES = 256, MAX_FAULTS = 256, MAX_XIDS = 64 };

/* value.c: one scripted value. */
typedef enum { NUMBER, TEXT, ERROR, ALL_ONES, SINE, SQUARE, RAMP, STEPS, COUNTER, INTEGRAL, FOLLOWS } Kind;
typedef struct { double time, value; } Point;
typedef struct {
    Kind kind;
    uint64_t whole; /* the exact integer, where there is one: a double cannot hold 64 bits */
    bool exact;
    double a, b, c; /* the number, or a wave's arguments in the order they are written */
    int code;
    Point *points;
    int count;
    char *text; /* escapes resolved; may hold any byte */
    size_t length;
} Value;
bool value_parse(const char *source, Value *value);
bool error_code(const char *word, int *code);
double duration(const char *text);

/* wave.c: a value at a moment, and its mean over an interval; time counts from the loading of the library. */
double elapsed(void);
double wall_clock(void);
double value_at(const Value *value, const struct Gpu *gpu, double time);
uint64_t whole_at(const Value *value, const struct Gpu *gpu, double time);
double value_mean(const Value *value, const struct Gpu *gpu, double from, double until);

/* scenario.c: the parsed file. */
typedef struct { char *key; Value value; } Entry;
typedef struct { Entry *entries; int count; } Table;
typedef struct Gpu {
    int index;
    Table table;
    bool replayed;      /* some key is a function's own name */
    const Value *every; /* answers for any numeric key that is not given */
    struct Gpu *parent; /* a MIG instance has one */
    unsigned gi, ci, slot;
    atomic_uint list_calls;
} Gpu;
typedef struct {
    int first, last; /* GPUs */
    int pid;         /* or one of the two below */
    unsigned lists;  /* bit per list: compute, graphics, MPS */
    Value memory, sm, mem, enc, dec;
    bool sampled;
    double age, from, until;
    unsigned gi, ci;
} Process;
enum { PID_SELF = -1, PID_PARENT = -2, LIST_COMPUTE = 1, LIST_GRAPHICS = 2, LIST_MPS = 4 };
typedef struct {
    char function[96];
    int first, last; /* GPUs; first < 0: calls that name no GPU as well */
    int code;
    double hang, from, until;
    unsigned every;
    atomic_uint calls;
} Fault;
typedef struct { int gpu; uint64_t type, data; double at; unsigned gi, ci; } Xid;
typedef struct {
    bool loaded;
    Table driver, latency;
    Gpu gpus[MAX_GPUS], instances[MAX_INSTANCES];
    int gpu_count, instance_count;
    Process *processes;
    int process_count;
    Fault faults[MAX_FAULTS];
    int fault_count;
    Xid xids[MAX_XIDS];
    int xid_count;
} Scenario;
extern Scenario scenario;
void scenario_load(const char *path);
const Value *table_find(const Table *table, const char *key);
Value *table_put(Table *table, const char *key);
const Value *find(const Gpu *gpu, const char *key);
bool range_parse(const char *text, int *first, int *last);

/* section.c: what one line of a section means. */
bool section_open(const char *header);
const char *section_set(const char *key, const char *text); /* a complaint, or NULL */
void section_finish(void);

/* answer.c: from key to the caller's memory; an absent key is NOT_SUPPORTED. */
nvmlReturn_t read_u32(const Gpu *gpu, const char *key, unsigned *out);
nvmlReturn_t read_u64(const Gpu *gpu, const char *key, uint64_t *out);
nvmlReturn_t read_text(const Gpu *gpu, const char *key, char *out, unsigned size);
nvmlReturn_t read_list(const Gpu *gpu, const char *key, unsigned *count, unsigned *out);
nvmlReturn_t read_pair(const Gpu *gpu, const char *first, const char *second, unsigned *a, unsigned *b);
unsigned read_or(const Gpu *gpu, const char *key, unsigned otherwise);
nvmlReturn_t copy_text(const char *text, size_t length, char *out, unsigned size);
const char *pick(const Gpu *gpu, const char *function, const char *key);

/* call.c: counting, initialisation, faults, cost. */
typedef struct Call {
    const char *name;
    atomic_ulong count;
    atomic_int ready;
    double busy, wait; /* microseconds */
    uint64_t faults[MAX_FAULTS / 64];
    struct Call *next;
} Call;
nvmlReturn_t enter_system(Call *call, bool needs_init);
nvmlReturn_t enter_device(Call *call, nvmlDevice_t handle, Gpu **gpu);
nvmlReturn_t enter_handle(Call *call, const Gpu *gpu); /* once a lookup knows which GPU it is about */
extern atomic_int init_count;
extern atomic_bool forked;
void calls_write(void);

/* latency.c */
void latency_of(Call *call);
void spend(double busy, double wait);
void rest(double seconds);
bool latency_scripted(void);

/* What each exported function begins with. */
#define ENTER(function, handle)                                   \
    static Call call = {.name = #function};                       \
    Gpu *gpu;                                                     \
    nvmlReturn_t refused = enter_device(&call, handle, &gpu);     \
    if (refused) return refused
#define ENTER_SYSTEM(function)                                    \
    static Call call = {.name = #function};                       \
    nvmlReturn_t refused = enter_system(&call, true);             \
    if (refused) return refused

/* One line a getter; where the key is NULL the function's own name is the key. */
#define UINT(function, key)                                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *out) {          \
        ENTER(function, handle);                                                \
        return out ? read_u32(gpu, pick(gpu, #function, key), out) : INVALID_ARGUMENT; }
#define ULONG(function, key)                                                    \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, uint64_t *out) {          \
        ENTER(function, handle);                                                \
        return out ? read_u64(gpu, pick(gpu, #function, key), out) : INVALID_ARGUMENT; }
#define STRING(function, key)                                                   \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, char *out, unsigned size) { \
        ENTER(function, handle);                                                \
        return out ? read_text(gpu, pick(gpu, #function, key), out, size) : INVALID_ARGUMENT; }
#define PAIR(function, first, second)                                           \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *a, unsigned *b) { \
        ENTER(function, handle);                                                \
        return a && b ? read_pair(gpu, first, second, a, b) : INVALID_ARGUMENT; }
/* Asked with an index that picks one key of a list. */
#define CHOICE(function, keys)                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned which, unsigned *out) { \
        ENTER(function, handle);                                                \
        if (!out || which >= COUNT(keys) || !keys[which]) return INVALID_ARGUMENT; \
        return read_u32(gpu, keys[which], out); }
/* A list of numbers: size query, then fetch. */
#define LIST(function, key)                                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *count, unsigned *out) { \
        ENTER(function, handle);                                                \
        return count ? read_list(gpu, pick(gpu, #function, key), count, out) : INVALID_ARGUMENT; }
/* Exported, but with nothing to say: the arguments after the handle are ignored. */
#define SILENT(function, code)                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle) {                         \
        ENTER(function, handle);                                                \
        return code; }
#define SILENT_SYSTEM(function, code)                                           \
    EXPORT nvmlReturn_t function(void) {                                        \
        ENTER_SYSTEM(function);                                                 \
        return code; }

#endif
