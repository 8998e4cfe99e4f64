/* nvmlDeviceGetFieldValues: each field answers or refuses on its own. */
#include <stdio.h>
#include <string.h>

#include "fake.h"

/* A field not listed here answers when the scenario has field.<id>. */
static const struct { unsigned field; const char *key; int type; double cost; } FIELDS[] = {
    {1, "ecc.mode", TYPE_U32, 140}, {2, "ecc.pending", TYPE_U32, 140},
    {3, "ecc.volatile.corrected", TYPE_U64, 2}, {4, "ecc.volatile.uncorrected", TYPE_U64, 2},
    {5, "ecc.aggregate.corrected", TYPE_U64, 2}, {6, "ecc.aggregate.uncorrected", TYPE_U64, 2},
    {29, "retired.corrected", TYPE_U32, 2}, {30, "retired.uncorrected", TYPE_U32, 2}, {31, "retired.pending", TYPE_U32, 2},
    {74, "violation.power", TYPE_U64, 2}, {75, "violation.thermal", TYPE_U64, 640},
    {76, "violation.sync_boost", TYPE_U64, 2}, {77, "violation.board_limit", TYPE_U64, 2},
    {78, "violation.low_utilization", TYPE_U64, 2}, {79, "violation.reliability", TYPE_U64, 2},
    {82, "temperature.memory", TYPE_U32, 1}, {83, "energy", TYPE_U64, 3160},
    {90, "nvlink.speed", TYPE_U32, 2}, {91, "nvlink.links", TYPE_U32, 2},
    {94, "pcie.replay", TYPE_U32, 147}, {95, "pcie.replay_rollover", TYPE_U32, 147},
    {138, "nvlink.tx", TYPE_U64, 110}, {139, "nvlink.rx", TYPE_U64, 110}, /* KiB */
    {140, "nvlink.raw_tx", TYPE_U64, 110}, {141, "nvlink.raw_rx", TYPE_U64, 110},
    {142, "remapped.corrected", TYPE_U32, 3}, {143, "remapped.uncorrected", TYPE_U32, 3},
    {144, "remapped.pending", TYPE_U32, 3}, {145, "remapped.failure", TYPE_U32, 3},
    {160, "nvlink.ecc_errors", TYPE_U64, 110}, {161, "nvlink.replay_errors", TYPE_U64, 110},
    {162, "nvlink.recovery_errors", TYPE_U64, 110}, {163, "nvlink.crc_errors", TYPE_U64, 110},
    {164, "nvlink.speed", TYPE_U32, 2}, {165, "nvlink.state", TYPE_U32, 2}, {166, "nvlink.version", TYPE_U32, 2},
    {173, "pcie.errors.corrected", TYPE_U32, 140}, {179, "pcie.errors.non_fatal", TYPE_U32, 140},
    {180, "pcie.errors.fatal", TYPE_U32, 140},
    {185, "power.average", TYPE_U32, 0.5}, {186, "power.instant", TYPE_U32, 0.5},
    {187, "power.limit.min", TYPE_U32, 2}, {188, "power.limit.max", TYPE_U32, 2}, {189, "power.limit.default", TYPE_U32, 2},
    {190, "power.limit.enforced", TYPE_U32, 2}, {191, "energy", TYPE_U64, 3160}, {192, "power.limit", TYPE_U32, 2},
    {193, "tlimit.shutdown", TYPE_S32, 200}, {194, "tlimit.slowdown", TYPE_S32, 200},
    {195, "tlimit.memory", TYPE_S32, 200}, {196, "tlimit.gpu", TYPE_S32, 200},
    {197, "pcie.tx_bytes", TYPE_U32, 113}, {198, "pcie.rx_bytes", TYPE_U32, 113}, /* 32 bits: they wrap */
    {230, "recovery_action", TYPE_U32, 2},
    {269, "violation.sw_thermal", TYPE_U64, 2}, {270, "violation.hw_thermal", TYPE_U64, 640},
    {271, "violation.power_brake", TYPE_U64, 640},
};

static nvmlReturn_t fetch(const Gpu *gpu, FieldValue *value) {
    char key[64];
    const char *named = NULL;
    double cost = 1.5;
    value->type = TYPE_U64;
    for (size_t i = 0; i < COUNT(FIELDS); i++)
        if (FIELDS[i].field == value->field) { named = FIELDS[i].key; value->type = FIELDS[i].type; cost = FIELDS[i].cost; }
    if (latency_scripted()) spend(cost, 0);
    value->latency = latency_scripted() ? (int64_t)cost : 0;
    snprintf(key, sizeof key, "field.%u", value->field);
    if (table_find(&gpu->table, key)) named = key;
    if (!named) return value->field < 1 || value->field > 400 ? INVALID_ARGUMENT : NOT_SUPPORTED;
    if (!strncmp(named, "nvlink.", 7) && !read_or(gpu, "nvlink.links", 0)) return NOT_SUPPORTED;
    /* The power of the module or of the memory: module.power.average, memory.power.average. */
    char scoped[96];
    snprintf(scoped, sizeof scoped, "%s.%s", value->scope == 1 ? "module" : "memory", named);
    if (!strncmp(named, "power.", 6) && value->scope) named = scoped;
    /* One link of a GPU: nvlink.tx.3, where the scenario has it. */
    char link_key[128];
    snprintf(link_key, sizeof link_key, "%s.%u", named, value->scope);
    if (!strncmp(named, "nvlink.", 7) && table_find(&gpu->table, link_key)) named = link_key;
    uint64_t wide = 0;
    nvmlReturn_t status = read_u64(gpu, named, &wide);
    const Value *source = find(gpu, named);
    if (!status && source->kind == NUMBER && !source->exact) { value->type = TYPE_DOUBLE; value->value.real = source->a; }
    else if (value->type == TYPE_U32 || value->type == TYPE_S32) value->value.u64 = (unsigned)wide;
    else value->value.u64 = wide;
    return status;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, FieldValue *values) {
    ENTER(nvmlDeviceGetFieldValues, handle);
    if (count < 1 || !values) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].time = (int64_t)(wall_clock() * 1e6);
        values[i].value.u64 = 0;
        values[i].status = fetch(gpu, &values[i]);
    }
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t handle, int count, FieldValue *values) {
    ENTER(nvmlDeviceClearFieldValues, handle);
    (void)count, (void)values;
    return NOT_SUPPORTED;
}
