/* Initialisation, versions, error strings and finding a device. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fake.h"

static nvmlReturn_t initialise(Call *call) {
    nvmlReturn_t status = enter_system(call, false);
    if (status) return status;
    if (!scenario.loaded) return UNKNOWN;
    atomic_fetch_add(&init_count, 1);
    atomic_store(&forked, false);
    return SUCCESS;
}

#define INIT(function, ...)                            \
    EXPORT nvmlReturn_t function(__VA_ARGS__) {        \
        static Call call = {.name = #function};        \
        return initialise(&call); }
INIT(nvmlInit, void)
INIT(nvmlInit_v2, void)

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    static Call call = {.name = "nvmlInitWithFlags"};
    (void)flags;
    return initialise(&call);
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    ENTER_SYSTEM(nvmlShutdown);
    atomic_fetch_sub(&init_count, 1);
    calls_write();
    return SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code) {
    static const char *const words[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized",
        "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout",
        "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires reset", "Operating System Error", "Driver/library version mismatch", "In use by another client",
        "Insufficient Memory", "No data", "vGPU ECC not supported", "Insufficient resources", "Frequency not supported",
        "Argument version mismatch", "Deprecated", "System is not in ready state", "No GPUs found", "Invalid state",
        "Reset type not supported"};
    return code >= 0 && code < (int)COUNT(words) ? words[code] : "Unknown Error";
}

static nvmlReturn_t driver_text(const char *key, char *out, unsigned size) {
    const Value *value = table_find(&scenario.driver, key);
    if (!out) return INVALID_ARGUMENT;
    if (!value) return NOT_SUPPORTED;
    return value->kind == ERROR ? value->code : copy_text(value->text, value->length, out, size);
}

static nvmlReturn_t driver_number(const char *key, unsigned *out) {
    const Value *value = table_find(&scenario.driver, key);
    if (!out) return INVALID_ARGUMENT;
    if (!value) return NOT_SUPPORTED;
    if (value->kind == ERROR) return value->code;
    *out = (unsigned)whole_at(value, &scenario.gpus[0], elapsed());
    return SUCCESS;
}

#define DRIVER_TEXT(function, key)                            \
    EXPORT nvmlReturn_t function(char *out, unsigned size) {  \
        ENTER_SYSTEM(function);                               \
        return driver_text(key, out, size); }
#define DRIVER_NUMBER(function, key)                          \
    EXPORT nvmlReturn_t function(unsigned *out) {             \
        ENTER_SYSTEM(function);                               \
        return driver_number(key, out); }
DRIVER_TEXT(nvmlSystemGetDriverVersion, "version")
DRIVER_TEXT(nvmlSystemGetNVMLVersion, "nvml")
DRIVER_NUMBER(nvmlSystemGetCudaDriverVersion, "cuda")
DRIVER_NUMBER(nvmlSystemGetCudaDriverVersion_v2, "cuda")
DRIVER_NUMBER(nvmlSystemGetNvlinkBwMode, "nvlink_bw_mode")
DRIVER_NUMBER(nvmlSystemGetConfComputeGpusReadyState, "confidential.ready")

EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(DriverBranch *out, unsigned size) {
    ENTER_SYSTEM(nvmlSystemGetDriverBranch);
    return out ? driver_text("branch", out->branch, size < sizeof out->branch ? size : sizeof out->branch) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlSystemGetConfComputeCapabilities(unsigned *out) {
    ENTER_SYSTEM(nvmlSystemGetConfComputeCapabilities);
    nvmlReturn_t status = driver_number("confidential.cpu", out);
    return status ? status : driver_number("confidential.gpus", out + 1);
}

EXPORT nvmlReturn_t nvmlSystemGetConfComputeState(unsigned *out) {
    ENTER_SYSTEM(nvmlSystemGetConfComputeState);
    unsigned environment = 0;
    nvmlReturn_t status = driver_number("confidential.environment", &environment);
    if (!status) { out[0] = environment; out[1] = out[2] = 0; }
    return status;
}

EXPORT nvmlReturn_t nvmlSystemGetConfComputeKeyRotationThresholdInfo(VersionedUlong *out) {
    ENTER_SYSTEM(nvmlSystemGetConfComputeKeyRotationThresholdInfo);
    unsigned threshold = 0;
    nvmlReturn_t status = out ? driver_number("confidential.key_rotation", &threshold) : INVALID_ARGUMENT;
    if (!status) out->value = threshold;
    return status;
}

EXPORT nvmlReturn_t nvmlSystemGetHicVersion(unsigned *count, void *out) {
    ENTER_SYSTEM(nvmlSystemGetHicVersion);
    (void)out;
    *count = 0;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size) {
    ENTER_SYSTEM(nvmlSystemGetProcessName);
    char path[32], name[1024] = "";
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file) return NOT_FOUND;
    size_t length = fread(name, 1, sizeof name - 1, file);
    fclose(file);
    length = strnlen(name, length);
    if (!out || !size) return INVALID_ARGUMENT;
    return copy_text(name, length < size ? length : size - 1, out, size);
}

#define DEVICE_COUNT(function)                         \
    EXPORT nvmlReturn_t function(unsigned *out) {      \
        ENTER_SYSTEM(function);                        \
        if (!out) return INVALID_ARGUMENT;             \
        *out = (unsigned)scenario.gpu_count;           \
        return SUCCESS; }
DEVICE_COUNT(nvmlDeviceGetCount)
DEVICE_COUNT(nvmlDeviceGetCount_v2)

#define BY_INDEX(function)                                                  \
    EXPORT nvmlReturn_t function(unsigned index, nvmlDevice_t *out) {       \
        ENTER_SYSTEM(function);                                             \
        if (!out || index >= (unsigned)scenario.gpu_count) return INVALID_ARGUMENT; \
        *out = &scenario.gpus[index];                                       \
        return enter_handle(&call, *out); }
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

static bool same_text(const Value *value, const char *text) { return value && !strcmp(value->text, text); }

/* "0000:1B:00.0", "1b:00.0" and "00000000:1B:00.0" are one place. */
static bool same_bus(const Value *value, const char *text) {
    unsigned a[3] = {0}, b[3] = {0};
    if (!value || sscanf(value->text, "%x:%x:%x", a, a + 1, a + 2) != 3) return false;
    if (sscanf(text, "%x:%x:%x", b, b + 1, b + 2) != 3) {
        b[0] = 0;
        if (sscanf(text, "%x:%x", b + 1, b + 2) != 2) return false;
    }
    return !memcmp(a, b, sizeof a);
}

typedef bool (*Same)(const Value *value, const char *text);

static nvmlReturn_t search(Call *call, const char *key, Same same, const char *text, nvmlDevice_t *out) {
    Gpu *found = NULL;
    if (!text || !out) return INVALID_ARGUMENT;
    for (int i = 0; i < scenario.gpu_count && !found; i++)
        if (same(table_find(&scenario.gpus[i].table, key), text)) found = &scenario.gpus[i];
    for (int i = 0; i < scenario.instance_count && !found && !strcmp(key, "uuid"); i++)
        if (same(table_find(&scenario.instances[i].table, key), text)) found = &scenario.instances[i];
    *out = found;
    return found ? enter_handle(call, found) : NOT_FOUND;
}

#define BY_TEXT(function, key, same)                                        \
    EXPORT nvmlReturn_t function(const char *text, nvmlDevice_t *out) {     \
        ENTER_SYSTEM(function);                                             \
        return search(&call, key, same, text, out); }
BY_TEXT(nvmlDeviceGetHandleByUUID, "uuid", same_text)
BY_TEXT(nvmlDeviceGetHandleBySerial, "serial", same_text)
BY_TEXT(nvmlDeviceGetHandleByPciBusId, "pci.bus_id", same_bus)
BY_TEXT(nvmlDeviceGetHandleByPciBusId_v2, "pci.bus_id", same_bus)

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const unsigned *uuid, nvmlDevice_t *out) {
    ENTER_SYSTEM(nvmlDeviceGetHandleByUUIDV);
    if (!uuid || uuid[1] != 1) return NOT_SUPPORTED; /* only the text form */
    return search(&call, "uuid", same_text, (const char *)(uuid + 2), out);
}
