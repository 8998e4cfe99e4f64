/* Utilisation, clocks, throttling and the history of samples. */
#include <math.h>
#include <stdio.h>

#include "fake.h"

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, Utilization *out) {
    ENTER(nvmlDeviceGetUtilizationRates, handle);
    return out ? read_pair(gpu, "utilization.gpu", "utilization.memory", &out->gpu, &out->memory) : INVALID_ARGUMENT;
}

#define ENGINE(function, key)                                                             \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *out, unsigned *period) {  \
        ENTER(function, handle);                                                          \
        if (!out || !period) return INVALID_ARGUMENT;                                     \
        *period = read_or(gpu, "utilization.period", 100000);                             \
        return read_u32(gpu, key, out); }
ENGINE(nvmlDeviceGetEncoderUtilization, "utilization.encoder")
ENGINE(nvmlDeviceGetDecoderUtilization, "utilization.decoder")
ENGINE(nvmlDeviceGetJpgUtilization, "utilization.jpeg")
ENGINE(nvmlDeviceGetOfaUtilization, "utilization.ofa")

static const char *const clocks[] = {"clock.graphics", "clock.sm", "clock.memory", "clock.video"};
static const char *const max_clocks[] = {"clock.max.graphics", "clock.max.sm", "clock.max.memory", "clock.max.video"};
static const char *const boosts[] = {"clock.boost.graphics", "clock.boost.sm", "clock.boost.memory", "clock.boost.video"};
static const char *const application[] = {
    "clock.application.graphics", "clock.application.sm", "clock.application.memory", "clock.application.video"};
static const char *const usual[] = {"clock.default.graphics", "clock.default.sm", "clock.default.memory", "clock.default.video"};
CHOICE(nvmlDeviceGetClockInfo, clocks)
CHOICE(nvmlDeviceGetMaxClockInfo, max_clocks)
CHOICE(nvmlDeviceGetMaxCustomerBoostClock, boosts)
CHOICE(nvmlDeviceGetApplicationsClock, application)
CHOICE(nvmlDeviceGetDefaultApplicationsClock, usual)
LIST(nvmlDeviceGetSupportedMemoryClocks, "clock.supported.memory")
UINT(nvmlDeviceGetAdaptiveClockInfoStatus, "clock.adaptive")
PAIR(nvmlDeviceGetAutoBoostedClocksEnabled, "clock.auto_boost", "clock.auto_boost.default")
UINT(nvmlDeviceGetGpcClkVfOffset, "clock.offset.gpc")
UINT(nvmlDeviceGetMemClkVfOffset, "clock.offset.memory")
PAIR(nvmlDeviceGetGpcClkMinMaxVfOffset, "clock.offset.gpc.min", "clock.offset.gpc.max")
PAIR(nvmlDeviceGetMemClkMinMaxVfOffset, "clock.offset.memory.min", "clock.offset.memory.max")

EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t handle, unsigned type, unsigned id, unsigned *out) {
    ENTER(nvmlDeviceGetClock, handle);
    static const char *const *const kinds[] = {clocks, application, usual, boosts};
    return out && type < 4 && id < 4 ? read_u32(gpu, kinds[id][type], out) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t handle, unsigned memory, unsigned *count, unsigned *out) {
    ENTER(nvmlDeviceGetSupportedGraphicsClocks, handle);
    (void)memory;
    return count ? read_list(gpu, "clock.supported.graphics", count, out) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t handle, unsigned *out, unsigned size) {
    ENTER(nvmlDeviceGetSupportedPerformanceStates, handle);
    unsigned count = size / (unsigned)sizeof *out, room = count;
    nvmlReturn_t status = read_list(gpu, "pstate.supported", &count, out);
    for (unsigned i = count; !status && i < room; i++) out[i] = 32; /* unknown: the end of the list */
    return status;
}

#define CLOCK_TEXT(function, key)                                                 \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, ClockText *out) {           \
        ENTER(function, handle);                                                  \
        return out ? read_text(gpu, key, out->text, sizeof out->text) : INVALID_ARGUMENT; }
CLOCK_TEXT(nvmlDeviceGetCurrentClockFreqs, "clock.text")
CLOCK_TEXT(nvmlDeviceGetPerformanceModes, "pstate.text")

ULONG(nvmlDeviceGetCurrentClocksEventReasons, "throttle.reasons")
ULONG(nvmlDeviceGetCurrentClocksThrottleReasons, "throttle.reasons")
ULONG(nvmlDeviceGetSupportedClocksEventReasons, "throttle.supported")
ULONG(nvmlDeviceGetSupportedClocksThrottleReasons, "throttle.supported")

EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t handle, unsigned policy, ViolationTime *out) {
    ENTER(nvmlDeviceGetViolationStatus, handle);
    static const char *const policies[12] = {
        "violation.power", "violation.thermal", "violation.sync_boost", "violation.board_limit",
        "violation.low_utilization", "violation.reliability", [10] = "violation.app_clocks", "violation.base_clocks"};
    if (!out || policy >= COUNT(policies) || !policies[policy]) return INVALID_ARGUMENT;
    out->reference = (uint64_t)(wall_clock() * 1e6);
    return read_u64(gpu, policies[policy], &out->violation); /* nanoseconds */
}

EXPORT nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t handle, DynamicPstates *out) {
    ENTER(nvmlDeviceGetDynamicPstatesInfo, handle);
    static const char *const parts[] = {"utilization.gpu", "utilization.memory", "utilization.decoder", "bus.utilization"};
    if (!out) return INVALID_ARGUMENT;
    *out = (DynamicPstates){0};
    if (!find(gpu, parts[0])) return NOT_SUPPORTED;
    for (size_t i = 0; i < COUNT(parts); i++) out->utilization[i] = (PstateUtilization){1, read_or(gpu, parts[i], 0), 0, 0};
    return SUCCESS;
}

/* The history: a grid of moments reaching back, the value being the wave's at each of them. */
static nvmlReturn_t history(const Gpu *gpu, const char *key, double spacing, unsigned depth, uint64_t last_seen,
                            unsigned *count, Sample *out) {
    const Value *value = find(gpu, key);
    if (!value) return NOT_SUPPORTED;
    if (value->kind == ERROR) return value->code;
    if (!out) return *count = depth, SUCCESS;
    double clock = wall_clock(), now = elapsed(), newest = floor(clock / spacing) * spacing;
    unsigned found = 0;
    for (unsigned i = 0; i < depth && found < *count; i++) {
        double moment = newest - spacing * (double)(depth - 1 - i);
        uint64_t stamp = (uint64_t)(moment * 1e6);
        if (stamp <= last_seen) continue;
        /* The type says 32 bits and the other half is not always clean, as on the real one. */
        out[found].value.u64 = i % 3 ? 0 : UINT64_C(1) << 32;
        out[found].value.u32 = (unsigned)whole_at(value, gpu, now - (clock - moment));
        out[found++].time = stamp;
    }
    *count = found;
    return found ? SUCCESS : NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t handle, unsigned kind, uint64_t last_seen, int *type, unsigned *count, Sample *out) {
    ENTER(nvmlDeviceGetSamples, handle);
    static const struct { const char *key; double spacing; unsigned depth; } kinds[] = {
        {"power", 0.02, 120}, {"utilization.gpu", 0.2, 71}, {"utilization.memory", 0.2, 71},
        {"utilization.encoder", 0.2, 71}, {"utilization.decoder", 0.2, 71}, [8] = {"utilization.jpeg", 0.2, 71},
        {"utilization.ofa", 0.2, 71}};
    if (!type || !count || kind >= COUNT(kinds) || kind == 7) return INVALID_ARGUMENT;
    *type = TYPE_U32;
    if (!kinds[kind].key) return NOT_FOUND;
    if (kind && out && latency_scripted()) spend(1400, 0);
    return history(gpu, kinds[kind].key, kinds[kind].spacing, kinds[kind].depth, last_seen, count, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t handle, unsigned *sessions, unsigned *fps, unsigned *latency) {
    ENTER(nvmlDeviceGetEncoderStats, handle);
    nvmlReturn_t status = sessions && fps && latency ? read_u32(gpu, "encoder.sessions", sessions) : INVALID_ARGUMENT;
    return status ? status : read_pair(gpu, "encoder.fps", "encoder.latency", fps, latency);
}

EXPORT nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t handle, FbcStats *out) {
    ENTER(nvmlDeviceGetFBCStats, handle);
    nvmlReturn_t status = out ? read_u32(gpu, "fbc.sessions", &out->sessions) : INVALID_ARGUMENT;
    return status ? status : read_pair(gpu, "fbc.fps", "fbc.latency", &out->fps, &out->latency);
}

/* No scenario scripts single sessions: none, where the counters exist. */
#define NO_SESSIONS(function, key)                                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *count, void *out) {    \
        ENTER(function, handle);                                                       \
        (void)out;                                                                     \
        unsigned sessions;                                                             \
        nvmlReturn_t status = count ? read_u32(gpu, key, &sessions) : INVALID_ARGUMENT; \
        if (!status) *count = 0;                                                       \
        return status; }
NO_SESSIONS(nvmlDeviceGetEncoderSessions, "encoder.sessions")
NO_SESSIONS(nvmlDeviceGetFBCSessions, "fbc.sessions")

EXPORT nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t handle, unsigned codec, unsigned *out) {
    ENTER(nvmlDeviceGetEncoderCapacity, handle);
    (void)codec;
    return out ? read_u32(gpu, "encoder.capacity", out) : INVALID_ARGUMENT;
}
