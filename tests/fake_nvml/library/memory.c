/* Memory, BAR1, ECC, remapped rows and retired pages. */
#include <stdio.h>

#include "fake.h"

typedef struct { uint64_t total, reserved, used, free; } Amounts;

static nvmlReturn_t amounts(const Gpu *gpu, Amounts *out) {
    nvmlReturn_t status = read_u64(gpu, "memory.total", &out->total);
    if (!status) status = read_u64(gpu, "memory.used", &out->used);
    if (status) return status;
    out->reserved = 0;
    if (table_find(&gpu->table, "memory.reserved")) status = read_u64(gpu, "memory.reserved", &out->reserved);
    uint64_t taken = out->used + out->reserved;
    out->free = out->total == UINT64_MAX ? UINT64_MAX : taken < out->total ? out->total - taken : 0;
    return status;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, Memory *out) {
    ENTER(nvmlDeviceGetMemoryInfo, handle);
    Amounts now;
    nvmlReturn_t status = out ? amounts(gpu, &now) : INVALID_ARGUMENT;
    if (status) return status;
    /* The first version has no place for reserved memory and counts it as used. */
    uint64_t used = now.used == UINT64_MAX ? now.used : now.used + now.reserved;
    *out = (Memory){now.total, now.free, used};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, MemoryV2 *out) {
    ENTER(nvmlDeviceGetMemoryInfo_v2, handle);
    Amounts now;
    if (!out) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(MemoryV2, 2)) return ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t status = amounts(gpu, &now);
    if (!status) *out = (MemoryV2){out->version, now.total, now.reserved, now.free, now.used};
    return status;
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, Bar1 *out) {
    ENTER(nvmlDeviceGetBAR1MemoryInfo, handle);
    nvmlReturn_t status = out ? read_u64(gpu, "bar1.total", &out->total) : INVALID_ARGUMENT;
    if (!status) status = read_u64(gpu, "bar1.used", &out->used);
    if (!status) out->free = out->used < out->total ? out->total - out->used : 0;
    return status;
}

EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t handle, uint64_t *out) {
    ENTER(nvmlDeviceGetConfComputeMemSizeInfo, handle);
    nvmlReturn_t status = out ? read_u64(gpu, "confidential.protected", out) : INVALID_ARGUMENT;
    return status ? status : read_u64(gpu, "confidential.unprotected", out + 1);
}

EXPORT nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t handle, Memory *out) {
    ENTER(nvmlDeviceGetConfComputeProtectedMemoryUsage, handle);
    uint64_t size;
    nvmlReturn_t status = out ? read_u64(gpu, "confidential.protected", &size) : INVALID_ARGUMENT;
    if (!status) *out = (Memory){size, size, 0};
    return status;
}

/* ecc.<volatile|aggregate>.<corrected|uncorrected>[.<place>] */
static nvmlReturn_t ecc(const Gpu *gpu, unsigned type, unsigned lifetime, int place, uint64_t *out) {
    static const char *const places[] = {"l1", "l2", "memory", "registers", "texture", "shared", "cbu", "sram"};
    char key[64];
    if (!out || type > 1 || lifetime > 1 || place >= (int)COUNT(places)) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "ecc.%s.%s%s%s", lifetime ? "aggregate" : "volatile", type ? "uncorrected" : "corrected",
             place < 0 ? "" : ".", place < 0 ? "" : places[place]);
    return read_u64(gpu, key, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, unsigned type, unsigned lifetime, uint64_t *out) {
    ENTER(nvmlDeviceGetTotalEccErrors, handle);
    return ecc(gpu, type, lifetime, -1, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t handle, unsigned type, unsigned lifetime, unsigned place, uint64_t *out) {
    ENTER(nvmlDeviceGetMemoryErrorCounter, handle);
    return place < 8 ? ecc(gpu, type, lifetime, (int)place, out) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t handle, unsigned type, unsigned lifetime, EccCounts *out) {
    ENTER(nvmlDeviceGetDetailedEccErrors, handle);
    if (!out) return INVALID_ARGUMENT;
    uint64_t *slots[] = {&out->l1, &out->l2, &out->memory, &out->registers};
    nvmlReturn_t status = SUCCESS;
    for (int i = 0; i < 4 && !status; i++) status = ecc(gpu, type, lifetime, i, slots[i]);
    return status;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned *corrected, unsigned *uncorrected,
                                              unsigned *pending, unsigned *failure) {
    ENTER(nvmlDeviceGetRemappedRows, handle);
    if (!corrected || !uncorrected || !pending || !failure) return INVALID_ARGUMENT;
    nvmlReturn_t status = read_pair(gpu, "remapped.corrected", "remapped.uncorrected", corrected, uncorrected);
    return status ? status : read_pair(gpu, "remapped.pending", "remapped.failure", pending, failure);
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t handle, RemappedRowsV2 *out) {
    ENTER(nvmlDeviceGetRemappedRows_v2, handle);
    if (!out) return INVALID_ARGUMENT;
    nvmlReturn_t status = read_pair(gpu, "remapped.corrected", "remapped.uncorrected", &out->corrected, &out->uncorrected);
    if (!status) status = read_pair(gpu, "remapped.pending", "remapped.failure", &out->pending, &out->failure);
    out->corrected_inactive = read_or(gpu, "remapped.corrected.inactive", 0);
    out->uncorrected_inactive = read_or(gpu, "remapped.uncorrected.inactive", 0);
    return status;
}

/* ecc.sram.exceeded says that there is an answer at all; a count that is not given is 0. */
EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t handle, SramStatus *out) {
    ENTER(nvmlDeviceGetSramEccErrorStatus, handle);
    if (!out) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(SramStatus, 1)) return ARGUMENT_VERSION_MISMATCH;
    const char *const keys[] = {"aggregate.parity", "aggregate.secded", "aggregate.corrected", "volatile.parity",
                                "volatile.secded", "volatile.corrected", "l2", "sm", "pcie", "mcu", "other"};
    uint64_t *const slots[] = {&out->aggregate_parity, &out->aggregate_secded, &out->aggregate_corrected, &out->volatile_parity,
                               &out->volatile_secded, &out->volatile_corrected, &out->l2, &out->sm, &out->pcie, &out->mcu, &out->other};
    for (size_t i = 0; i < COUNT(keys); i++) {
        char key[64];
        snprintf(key, sizeof key, "ecc.sram.%s", keys[i]);
        *slots[i] = 0;
        if (table_find(&gpu->table, key)) read_u64(gpu, key, slots[i]);
    }
    return read_u32(gpu, "ecc.sram.exceeded", &out->exceeded);
}

EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t handle, RemapHistogram *out) {
    ENTER(nvmlDeviceGetRowRemapperHistogram, handle);
    nvmlReturn_t status = out ? read_pair(gpu, "remapper.max", "remapper.high", &out->max, &out->high) : INVALID_ARGUMENT;
    if (!status) status = read_pair(gpu, "remapper.partial", "remapper.low", &out->partial, &out->low);
    return status ? status : read_u32(gpu, "remapper.none", &out->none);
}

UINT(nvmlDeviceGetRetiredPagesPendingStatus, "retired.pending")

/* Addresses are made up: only their number is scripted. */
static nvmlReturn_t retired(const Gpu *gpu, unsigned cause, unsigned *count, uint64_t *out, uint64_t *times) {
    static const char *const causes[] = {"retired.corrected", "retired.uncorrected"};
    unsigned found, room;
    if (!count || cause >= COUNT(causes)) return INVALID_ARGUMENT;
    nvmlReturn_t status = read_u32(gpu, causes[cause], &found);
    if (status) return status;
    room = out ? *count : 0;
    for (unsigned i = 0; i < found && i < room; i++) {
        out[i] = 0x100000u + i * 0x10000u;
        if (times) times[i] = 1700000000 + i;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t handle, unsigned cause, unsigned *count, uint64_t *out) {
    ENTER(nvmlDeviceGetRetiredPages, handle);
    return retired(gpu, cause, count, out, NULL);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t handle, unsigned cause, unsigned *count, uint64_t *out, uint64_t *times) {
    ENTER(nvmlDeviceGetRetiredPages_v2, handle);
    return retired(gpu, cause, count, out, times);
}
