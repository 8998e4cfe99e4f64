/* GPM: two samples are two moments; a metric is the mean of its wave between them.
 * As on an H200 the counters are latched every gpm.latch ms (100): two samples within one latch are the same moment. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct GpmSample { const Gpu *gpu; double time; };

/* Names a person can write; any other metric is gpm.<id>. */
static const struct { unsigned id; const char *key; } NAMES[] = {
    {1, "gpm.graphics"}, {2, "gpm.sm"}, {3, "gpm.occupancy"}, {4, "gpm.integer"}, {5, "gpm.tensor"}, {6, "gpm.dfma"},
    {7, "gpm.hmma"}, {8, "gpm.dmma"}, {9, "gpm.imma"}, {10, "gpm.dram"}, {11, "gpm.fp64"}, {12, "gpm.fp32"}, {13, "gpm.fp16"},
    {20, "gpm.pcie_tx"}, {21, "gpm.pcie_rx"}, {60, "gpm.nvlink_rx"}, {61, "gpm.nvlink_tx"}};

/* The ids driver 580 knows: it refuses those of later drivers with INVALID_ARGUMENT. */
static bool recognised(unsigned id) {
    static const unsigned ranges[][2] = {{1, 13}, {20, 21}, {30, 37}, {40, 47}, {50, 51}, {60, 97}, {100, 209}};
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (id >= ranges[i][0] && id <= ranges[i][1]) return true;
    return false;
}

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, GpmSupport *out) {
    ENTER(nvmlGpmQueryDeviceSupport, handle);
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 1) return ARGUMENT_VERSION_MISMATCH;
    const Value *value = table_find(&gpu->table, "gpm");
    if (value && value->kind == ERROR) return value->code;
    out->supported = read_or(gpu, "gpm", 0);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out) {
    ENTER_SYSTEM(nvmlGpmSampleAlloc);
    if (!out) return INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : NO_MEMORY;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    ENTER_SYSTEM(nvmlGpmSampleFree);
    if (!sample) return INVALID_ARGUMENT;
    free(sample);
    return SUCCESS;
}

static nvmlReturn_t take(const Gpu *gpu, const Gpu *supporter, nvmlGpmSample_t sample) {
    if (!sample) return INVALID_ARGUMENT;
    if (!read_or(supporter, "gpm", 0)) return NOT_SUPPORTED;
    double latch = read_or(supporter, "gpm.latch", 100) / 1000.0, now = elapsed();
    /* GPUs do not latch together: each has a phase of its own, by its number. */
    double phase = latch > 0 ? fmod((supporter - scenario.gpus) * 0.37, 1.0) * latch : 0;
    *sample = (struct GpmSample){gpu, latch > 0 ? floor((now + phase) / latch) * latch - phase : now};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t handle, nvmlGpmSample_t sample) {
    ENTER(nvmlGpmSampleGet, handle);
    return gpu->parent ? INVALID_ARGUMENT : take(gpu, gpu, sample);
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t handle, unsigned gi, nvmlGpmSample_t sample) {
    ENTER(nvmlGpmMigSampleGet, handle);
    for (int i = 0; i < scenario.instance_count; i++) {
        const Gpu *instance = &scenario.instances[i];
        if (instance->parent == gpu && instance->gi == gi) return take(instance, gpu, sample);
    }
    return NOT_FOUND;
}

static void measure(const struct GpmSample *from, const struct GpmSample *until, GpmMetric *metric) {
    char key[32];
    const char *named = key;
    snprintf(key, sizeof key, "gpm.%u", metric->id);
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (NAMES[i].id == metric->id) named = NAMES[i].key;
    const Value *value = find(from->gpu, named);
    metric->value = 0;
    metric->status = value && value->kind == ERROR ? value->code : value || recognised(metric->id) ? SUCCESS : INVALID_ARGUMENT;
    if (!value || metric->status) return;
    /* Between two samples of one latch every counter stood still: 0, and for DRAM nothing divided by nothing. */
    if (until->time <= from->time) metric->value = metric->id == 10 ? NAN : 0;
    else metric->value = value_mean(value, from->gpu, from->time, until->time);
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(GpmMetricsGet *query) {
    ENTER_SYSTEM(nvmlGpmMetricsGet);
    if (!query || !query->first || !query->second) return INVALID_ARGUMENT;
    if (query->version != 1) return ARGUMENT_VERSION_MISMATCH;
    if (!query->first->gpu || query->first->gpu != query->second->gpu) return INVALID_ARGUMENT;
    for (unsigned i = 0; i < query->count; i++) {
        if (latency_scripted() && query->metrics[i].id == 1) spend(1400, 0);
        measure(query->first, query->second, &query->metrics[i]);
    }
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t handle, unsigned *out) {
    ENTER(nvmlGpmQueryIfStreamingEnabled, handle);
    return out ? read_u32(gpu, "gpm.streaming", out) : INVALID_ARGUMENT;
}
