/* Identity, modes, power, temperature, fans: one line a getter. */
#include <stdio.h>
#include <string.h>

#include "fake.h"

STRING(nvmlDeviceGetName, "name")
STRING(nvmlDeviceGetUUID, "uuid")
STRING(nvmlDeviceGetSerial, "serial")
STRING(nvmlDeviceGetVbiosVersion, "vbios")
STRING(nvmlDeviceGetBoardPartNumber, "part_number")
STRING(nvmlDeviceGetInforomImageVersion, "inforom.image")
UINT(nvmlDeviceGetIndex, "index")
UINT(nvmlDeviceGetMinorNumber, "minor")
UINT(nvmlDeviceGetBoardId, "board_id")
UINT(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board")
UINT(nvmlDeviceGetModuleId, "module_id")
UINT(nvmlDeviceGetBrand, "brand")
UINT(nvmlDeviceGetArchitecture, "architecture")
UINT(nvmlDeviceGetBusType, "bus_type")
UINT(nvmlDeviceGetNumGpuCores, "cores")
UINT(nvmlDeviceGetMemoryBusWidth, "memory.bus_width")
UINT(nvmlDeviceGetNumaNodeId, "numa_node")
UINT(nvmlDeviceGetIrqNum, "irq")
UINT(nvmlDeviceGetInforomConfigurationChecksum, "inforom.checksum")
UINT(nvmlDeviceGetPersistenceMode, "persistence")
UINT(nvmlDeviceGetComputeMode, "compute_mode")
UINT(nvmlDeviceGetDisplayMode, "display.mode")
UINT(nvmlDeviceGetDisplayActive, "display.active")
UINT(nvmlDeviceGetVirtualizationMode, "virtualization")
UINT(nvmlDeviceGetAccountingMode, "accounting.mode")
UINT(nvmlDeviceGetAccountingBufferSize, "accounting.buffer")
LIST(nvmlDeviceGetAccountingPids, "accounting.pids")
PAIR(nvmlDeviceGetDriverModel, "driver_model", "driver_model.pending")
PAIR(nvmlDeviceGetDriverModel_v2, "driver_model", "driver_model.pending")
PAIR(nvmlDeviceGetGpuOperationMode, "operation_mode", "operation_mode.pending")
PAIR(nvmlDeviceGetGspFirmwareMode, "gsp.mode", "gsp.default")
PAIR(nvmlDeviceGetEccMode, "ecc.mode", "ecc.pending")
UINT(nvmlDeviceGetDefaultEccMode, "ecc.default")

UINT(nvmlDeviceGetPowerUsage, "power")
UINT(nvmlDeviceGetPowerManagementLimit, "power.limit")
UINT(nvmlDeviceGetEnforcedPowerLimit, "power.limit.enforced")
UINT(nvmlDeviceGetPowerManagementDefaultLimit, "power.limit.default")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power.limit.min", "power.limit.max")
UINT(nvmlDeviceGetPowerManagementMode, "power.mode")
UINT(nvmlDeviceGetPowerSource, "power.source")
ULONG(nvmlDeviceGetTotalEnergyConsumption, "energy")
UINT(nvmlDeviceGetPerformanceState, "pstate")
UINT(nvmlDeviceGetPowerState, "pstate")

UINT(nvmlDeviceGetNumFans, "fan.count")
UINT(nvmlDeviceGetFanSpeed, "fan.speed")
PAIR(nvmlDeviceGetMinMaxFanSpeed, "fan.min", "fan.max")

static const char *const thresholds[] = {
    "threshold.shutdown", "threshold.slowdown", "threshold.memory", "threshold.gpu",
    "threshold.acoustic.min", "threshold.acoustic", "threshold.acoustic.max", "threshold.gps"};

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, unsigned which, unsigned *out) {
    ENTER(nvmlDeviceGetTemperatureThreshold, handle);
    if (!out || which >= COUNT(thresholds)) return INVALID_ARGUMENT;
    if (which != 1 && latency_scripted()) spend(145, 0);
    return read_u32(gpu, thresholds[which], out);
}

static const char *const sensors[] = {"temperature"};
CHOICE(nvmlDeviceGetTemperature, sensors)

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, TemperatureV *out) {
    ENTER(nvmlDeviceGetTemperatureV, handle);
    if (!out || out->sensor) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(TemperatureV, 1)) return ARGUMENT_VERSION_MISMATCH;
    return read_u32(gpu, "temperature", (unsigned *)&out->temperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t handle, MarginTemperature *out) {
    ENTER(nvmlDeviceGetMarginTemperature, handle);
    return out ? read_u32(gpu, "temperature.margin", (unsigned *)&out->margin) : INVALID_ARGUMENT;
}

/* fan.N speaks for one fan; else all turn as fan.speed says. */
static nvmlReturn_t fan(const Gpu *gpu, unsigned which, const char *what, unsigned *out) {
    char key[32];
    if (!out || which >= read_or(gpu, "fan.count", 0)) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "fan.%u", which);
    return read_u32(gpu, !strcmp(what, "fan.speed") && table_find(&gpu->table, key) ? key : what, out);
}

#define FAN(function, key)                                                             \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned which, unsigned *out) { \
        ENTER(function, handle);                                                       \
        return fan(gpu, which, key, out); }
FAN(nvmlDeviceGetFanSpeed_v2, "fan.speed")
FAN(nvmlDeviceGetTargetFanSpeed, "fan.speed")
FAN(nvmlDeviceGetFanControlPolicy_v2, "fan.policy")

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t handle, FanSpeedInfo *out) {
    ENTER(nvmlDeviceGetFanSpeedRPM, handle);
    return out ? fan(gpu, out->fan, "fan.rpm", &out->speed) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor) {
    ENTER(nvmlDeviceGetCudaComputeCapability, handle);
    const Value *value = table_find(&gpu->table, "compute_capability");
    if (!major || !minor) return INVALID_ARGUMENT;
    if (value && value->kind == ERROR) return value->code;
    return value && sscanf(value->text, "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t handle, char *out) {
    ENTER(nvmlDeviceGetGspFirmwareVersion, handle);
    return out ? read_text(gpu, "gsp.version", out, 64) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t handle, unsigned object, char *out, unsigned size) {
    ENTER(nvmlDeviceGetInforomVersion, handle);
    static const char *const objects[] = {"inforom.oem", "inforom.ecc", "inforom.power", "inforom.den"};
    return out && object < COUNT(objects) ? read_text(gpu, objects[object], out, size) : INVALID_ARGUMENT;
}

/* inforom.valid: 1 agrees with its checksum, 0 does not. */
EXPORT nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t handle) {
    ENTER(nvmlDeviceValidateInforom, handle);
    unsigned valid = 0;
    nvmlReturn_t status = read_u32(gpu, "inforom.valid", &valid);
    return status ? status : valid ? SUCCESS : CORRUPTED_INFOROM;
}

EXPORT nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t handle, char *out) {
    ENTER(nvmlDeviceGetHostname_v1, handle);
    return out ? read_text(gpu, "hostname", out, 64) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t handle, PlatformInfo *out) {
    ENTER(nvmlDeviceGetPlatformInfo, handle);
    if (!out) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(PlatformInfo, 2)) return ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t status = read_text(gpu, "platform.chassis", out->chassis, sizeof out->chassis);
    if (status) return status;
    uint64_t guid = 0;
    if (table_find(&gpu->table, "platform.guid")) read_u64(gpu, "platform.guid", &guid);
    memset(out->guid, 0, sizeof out->guid);
    memcpy(out->guid, &guid, sizeof guid);
    out->slot = (uint8_t)read_or(gpu, "platform.slot", 0);
    out->tray = (uint8_t)read_or(gpu, "platform.tray", 0);
    out->host = (uint8_t)read_or(gpu, "platform.host", 0);
    out->peer = (uint8_t)read_or(gpu, "platform.peer", 0);
    out->module = (uint8_t)read_or(gpu, "platform.module", 0);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t handle, VersionedUint *now, VersionedUint *pending) {
    ENTER(nvmlDeviceGetDramEncryptionMode, handle);
    if (!now || !pending) return INVALID_ARGUMENT;
    if (now->version != VERSION_OF(VersionedUint, 1)) return ARGUMENT_VERSION_MISMATCH;
    return read_pair(gpu, "memory.encryption", "memory.encryption.pending", &now->value, &pending->value);
}

/* Records of a version word and one answer. */
#define VERSIONED(function, key)                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, VersionedUint *out) {       \
        ENTER(function, handle);                                                  \
        return out ? read_u32(gpu, key, &out->value) : INVALID_ARGUMENT; }
VERSIONED(nvmlDeviceGetAddressingMode, "addressing_mode")
VERSIONED(nvmlDeviceGetCapabilities, "capabilities")
VERSIONED(nvmlDeviceGetUnrepairableMemoryFlag_v1, "memory.unrepairable")
UINT(nvmlDeviceGetC2cModeInfoV, "c2c")

EXPORT nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t handle, VersionedUlong *out) {
    ENTER(nvmlDeviceGetPdi, handle);
    return out ? read_u64(gpu, "pdi", &out->value) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t handle, VersionedPair *out) {
    ENTER(nvmlDeviceGetRepairStatus, handle);
    return out ? read_pair(gpu, "repair.channel", "repair.tpc", &out->first, &out->second) : INVALID_ARGUMENT;
}

#define PAIR_OF_GPUS(function, key, otherwise)                                                 \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, nvmlDevice_t other, unsigned *out) {     \
        ENTER(function, handle);                                                               \
        if (!out || !other) return INVALID_ARGUMENT;                                           \
        *out = read_or(gpu, key, otherwise);                                                   \
        return SUCCESS; }
PAIR_OF_GPUS(nvmlDeviceGetTopologyCommonAncestor, "topology", 40)
PAIR_OF_GPUS(nvmlDeviceOnSameBoard, "multi_gpu_board", 0)

/* accounting.PID = "gpu% memory% bytes milliseconds running". */
EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t handle, unsigned pid, AccountingStats *out) {
    ENTER(nvmlDeviceGetAccountingStats, handle);
    char key[32];
    unsigned long long bytes, time;
    if (!out) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "accounting.%u", pid);
    const Value *value = table_find(&gpu->table, key);
    *out = (AccountingStats){0};
    if (!value || value->kind != TEXT) return NOT_FOUND;
    if (sscanf(value->text, "%u %u %llu %llu %u", &out->gpu, &out->memory, &bytes, &time, &out->running) != 5) return UNKNOWN;
    out->max_memory = bytes, out->time = time;
    return SUCCESS;
}

/* cpu_affinity = 0-15,32-47 and numa_affinity = 0 as sets of bits. */
static nvmlReturn_t bits(const Gpu *gpu, const char *key, unsigned count, unsigned long *out) {
    const Value *value = table_find(&gpu->table, key);
    if (!out) return INVALID_ARGUMENT;
    if (!value) return NOT_SUPPORTED;
    if (value->kind == ERROR) return value->code;
    memset(out, 0, count * sizeof *out);
    for (const char *at = value->text; at && *at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        unsigned first = 0, last = 0, wide = 8 * (unsigned)sizeof *out;
        if (sscanf(at, "%u-%u", &first, &last) == 1) last = first;
        for (unsigned bit = first; bit <= last && bit < count * wide; bit++) out[bit / wide] |= 1ul << bit % wide;
    }
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned count, unsigned long *out) {
    ENTER(nvmlDeviceGetCpuAffinity, handle);
    return bits(gpu, "cpu_affinity", count, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t handle, unsigned count, unsigned long *out, unsigned scope) {
    ENTER(nvmlDeviceGetMemoryAffinity, handle);
    return scope < 2 ? bits(gpu, "numa_affinity", count, out) : INVALID_ARGUMENT;
}
