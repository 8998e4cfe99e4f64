/* Events: XIDs and others fall due at the moments the scenario gives. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "fake.h"

enum { ALL_EVENTS = 65439 };

struct EventSet {
    pthread_mutex_t lock; /* around the fields below, never while waiting */
    struct { const Gpu *gpu; uint64_t types; double since; } watched[MAX_GPUS];
    int count;
    bool delivered[MAX_XIDS];
};

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, uint64_t *out) {
    ENTER(nvmlDeviceGetSupportedEventTypes, handle);
    if (!out) return INVALID_ARGUMENT;
    if (table_find(&gpu->table, "events")) return read_u64(gpu, "events", out);
    *out = ALL_EVENTS;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out) {
    ENTER_SYSTEM(nvmlEventSetCreate);
    if (!out) return INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    if (!*out) return NO_MEMORY;
    pthread_mutex_init(&(*out)->lock, NULL);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    ENTER_SYSTEM(nvmlEventSetFree);
    if (!set) return INVALID_ARGUMENT;
    pthread_mutex_destroy(&set->lock);
    free(set);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, uint64_t types, nvmlEventSet_t set) {
    ENTER(nvmlDeviceRegisterEvents, handle);
    uint64_t supported = table_find(&gpu->table, "events") ? 0 : ALL_EVENTS;
    if (!set) return INVALID_ARGUMENT;
    nvmlReturn_t status = supported ? SUCCESS : read_u64(gpu, "events", &supported);
    if (status || types & ~supported) return status ? status : NOT_SUPPORTED;
    pthread_mutex_lock(&set->lock);
    bool room = set->count < MAX_GPUS;
    if (room) {
        set->watched[set->count].gpu = gpu;
        set->watched[set->count].types = types;
        set->watched[set->count++].since = elapsed();
    }
    pthread_mutex_unlock(&set->lock);
    return room ? SUCCESS : NO_MEMORY;
}

/* Only what happens after registration is told, once per set. */
static bool watches(const struct EventSet *set, const Xid *xid) {
    for (int i = 0; i < set->count; i++) {
        if (set->watched[i].gpu != &scenario.gpus[xid->gpu]) continue;
        if (set->watched[i].types & xid->type && xid->at >= set->watched[i].since) return true;
    }
    return false;
}

/* Index of the next event that has not been told, or -1. */
static int next_event(struct EventSet *set) {
    int next = -1;
    for (int i = 0; i < scenario.xid_count; i++) {
        if (set->delivered[i] || !watches(set, &scenario.xids[i])) continue;
        if (next < 0 || scenario.xids[i].at < scenario.xids[next].at) next = i;
    }
    return next;
}

static bool deliver(struct EventSet *set, EventData *out) {
    pthread_mutex_lock(&set->lock);
    int next = next_event(set);
    bool due = next >= 0 && scenario.xids[next].at <= elapsed();
    if (due) {
        const Xid *xid = &scenario.xids[next];
        set->delivered[next] = true;
        *out = (EventData){&scenario.gpus[xid->gpu], xid->type, xid->data, xid->gi, xid->ci};
    }
    pthread_mutex_unlock(&set->lock);
    return due;
}

static nvmlReturn_t wait_for(struct EventSet *set, EventData *out, unsigned timeout_ms) {
    if (!set || !out) return INVALID_ARGUMENT;
    double end = wall_clock() + timeout_ms / 1e3;
    while (!deliver(set, out)) {
        double left = end - wall_clock();
        if (left <= 0) return TIMEOUT;
        rest(fmin(left, 0.005)); /* short, since a test may move the clock */
    }
    return SUCCESS;
}

#define WAIT(function)                                                                         \
    EXPORT nvmlReturn_t function(nvmlEventSet_t set, EventData *out, unsigned timeout_ms) {    \
        ENTER_SYSTEM(function);                                                                \
        return wait_for(set, out, timeout_ms); }
WAIT(nvmlEventSetWait)
WAIT(nvmlEventSetWait_v2)
