/* MIG: a GPU's mode and the handles of its instances. */
#include <stdio.h>
#include <string.h>

#include "fake.h"

PAIR(nvmlDeviceGetMigMode, "mig.mode", "mig.pending")
UINT(nvmlDeviceGetMaxMigDeviceCount, "mig.max")

/* Slots without an instance are holes a client has to step over. */
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *out) {
    ENTER(nvmlDeviceGetMigDeviceHandleByIndex, handle);
    if (!out || gpu->parent || index >= read_or(gpu, "mig.max", 0)) return INVALID_ARGUMENT;
    if (!read_or(gpu, "mig.mode", 0)) return NOT_FOUND;
    for (int i = 0; i < scenario.instance_count; i++) {
        Gpu *instance = &scenario.instances[i];
        if (instance->parent == gpu && instance->slot == index) return *out = instance, SUCCESS;
    }
    return NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *out) {
    ENTER(nvmlDeviceIsMigDeviceHandle, handle);
    if (!out) return INVALID_ARGUMENT;
    *out = gpu->parent != NULL;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *out) {
    ENTER(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle);
    if (!out || !gpu->parent) return INVALID_ARGUMENT;
    *out = gpu->parent;
    return SUCCESS;
}

#define INSTANCE_ID(function, id)                                              \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *out) {         \
        ENTER(function, handle);                                               \
        if (!out || !gpu->parent) return INVALID_ARGUMENT;                     \
        *out = gpu->id;                                                        \
        return SUCCESS; }
INSTANCE_ID(nvmlDeviceGetGpuInstanceId, gi)
INSTANCE_ID(nvmlDeviceGetComputeInstanceId, ci)

static nvmlReturn_t attributes(const Gpu *gpu, Attributes *out) {
    uint64_t bytes;
    if (!out) return INVALID_ARGUMENT;
    if (!gpu->parent) return NOT_SUPPORTED;
    nvmlReturn_t status = read_u64(gpu, "memory.total", &bytes);
    if (status) return status;
    *out = (Attributes){
        .multiprocessors = read_or(gpu, "multiprocessors", 14), .copy_engines = read_or(gpu, "copy_engines", 1),
        .decoders = read_or(gpu, "decoders", 0), .encoders = read_or(gpu, "encoders", 0), .jpegs = read_or(gpu, "jpegs", 0),
        .ofas = read_or(gpu, "ofas", 0), .gi_slices = read_or(gpu, "slices", 1),
        .ci_slices = read_or(gpu, "compute_slices", read_or(gpu, "slices", 1)), .memory_mb = bytes >> 20};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, Attributes *out) {
    ENTER(nvmlDeviceGetAttributes_v2, handle);
    return attributes(gpu, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t handle, Attributes *out) {
    ENTER(nvmlDeviceGetAttributes, handle);
    return attributes(gpu, out);
}

/* mig.profiles: words of id:name:free:total:MiB:p2p:SMs:copy:decoders:encoders:jpegs:ofas, in NVML's order of profiles. */
static bool profile(const Gpu *gpu, unsigned place, bool by_id, unsigned *free, MigProfile *out) {
    const Value *value = table_find(&gpu->table, "mig.profiles");
    char *rest = NULL, text[2048];
    if (!value || value->kind != TEXT || value->length >= sizeof text) return false;
    memcpy(text, value->text, value->length + 1);
    unsigned at = 0;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest), at++) {
        unsigned mib = 0;
        int found = sscanf(word, "%u:%90[^:]:%u:%u:%u:%u:%u:%u:%u:%u:%u:%u", &out->id, out->name, free, &out->total, &mib,
                           &out->p2p, &out->multiprocessors, &out->copy_engines, &out->decoders, &out->encoders,
                           &out->jpegs, &out->ofas);
        out->memory_mb = mib;
        if (found == 12 && (by_id ? out->id == place : at == place)) return true;
    }
    return false;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t handle, unsigned which, MigProfile *out) {
    ENTER(nvmlDeviceGetGpuInstanceProfileInfoV, handle);
    unsigned free = 0;
    if (!out) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(MigProfile, 2)) return ARGUMENT_VERSION_MISMATCH;
    return profile(gpu, which, false, &free, out) ? SUCCESS : NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t handle, unsigned id, unsigned *out) {
    ENTER(nvmlDeviceGetGpuInstanceRemainingCapacity, handle);
    MigProfile found = {0};
    return out && profile(gpu, id, true, out, &found) ? SUCCESS : NOT_SUPPORTED;
}
