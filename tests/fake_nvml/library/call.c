/* The door every exported function enters by: count, initialisation, faults, cost. */
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

atomic_int init_count;
atomic_bool forked;
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER; /* never held while a call waits */
static Call *calls;

/* Once per function: which faults name it and what it costs. */
static void enlist(Call *call) {
    pthread_mutex_lock(&registering);
    if (!atomic_load(&call->ready)) {
        for (int i = 0; i < scenario.fault_count; i++)
            if (!fnmatch(scenario.faults[i].function, call->name, 0)) call->faults[i / 64] |= UINT64_C(1) << (i % 64);
        latency_of(call);
        call->next = calls;
        calls = call;
        atomic_store(&call->ready, 1);
    }
    pthread_mutex_unlock(&registering);
}

static void count(Call *call) {
    if (!atomic_load_explicit(&call->ready, memory_order_acquire)) enlist(call);
    atomic_fetch_add_explicit(&call->count, 1, memory_order_relaxed);
}

static bool strikes(Fault *fault, const Gpu *gpu) {
    if (fault->first >= 0 && (!gpu || gpu->index < fault->first || gpu->index > fault->last)) return false;
    double now = elapsed();
    if (now < fault->from || now >= fault->until) return false;
    return (atomic_fetch_add(&fault->calls, 1) + 1) % fault->every == 0;
}

/* Hangs here, in the caller's thread and without a lock, or says what to return. */
static nvmlReturn_t trouble(Call *call, const Gpu *gpu, bool named) {
    for (int i = 0; i < scenario.fault_count; i++) {
        Fault *fault = &scenario.faults[i];
        if (!(call->faults[i / 64] >> (i % 64) & 1)) continue;
        /* A lookup is spared by faults on a GPU's queries unless they name the lookups. */
        if (named && (fault->first < 0 || strncmp(fault->function, "nvmlDeviceGetHandle", 19))) continue;
        if (!strikes(fault, gpu)) continue;
        if (fault->hang > 0) rest(fault->hang);
        if (fault->code) return fault->code;
    }
    return SUCCESS;
}

nvmlReturn_t enter_system(Call *call, bool needs_init) {
    count(call);
    if (needs_init && !atomic_load(&init_count)) return UNINITIALIZED;
    nvmlReturn_t status = trouble(call, NULL, false);
    if (!status) spend(call->busy, call->wait);
    return status;
}

nvmlReturn_t enter_handle(Call *call, const Gpu *gpu) {
    const Value *handle = table_find(&gpu->table, "handle");
    return handle && handle->kind == ERROR ? handle->code : trouble(call, gpu, true);
}

static bool known(const Gpu *handle) {
    return (handle >= scenario.gpus && handle < scenario.gpus + scenario.gpu_count) ||
           (handle >= scenario.instances && handle < scenario.instances + scenario.instance_count);
}

nvmlReturn_t enter_device(Call *call, nvmlDevice_t handle, Gpu **gpu) {
    count(call);
    if (!atomic_load(&init_count)) return UNINITIALIZED;
    if (!known(handle)) return INVALID_ARGUMENT;
    *gpu = handle;
    if (atomic_load(&forked)) { /* a connection inherited by fork, where the scenario says that breaks it */
        const Value *broken = table_find(&scenario.driver, "fork");
        if (broken && broken->kind == ERROR) return broken->code;
    }
    nvmlReturn_t status = trouble(call, handle, false);
    if (status) return status;
    spend(call->busy, call->wait);
    const Value *replay = handle->replayed ? table_find(&handle->table, call->name) : NULL;
    return replay && replay->kind == ERROR ? replay->code : SUCCESS;
}

/* Appends what was called since the last time; a reader adds the lines up, so processes may share the file. */
void calls_write(void) {
    const char *path = getenv("FAKE_NVML_CALLS");
    char *text = NULL;
    size_t size = 0;
    FILE *lines = path && *path ? open_memstream(&text, &size) : NULL;
    if (!lines) return;
    pthread_mutex_lock(&registering);
    for (Call *call = calls; call; call = call->next) {
        unsigned long n = atomic_exchange(&call->count, 0);
        if (n) fprintf(lines, "%s %lu\n", call->name, n);
    }
    pthread_mutex_unlock(&registering);
    fclose(lines);
    int file = size ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file >= 0) {
        if (write(file, text, size) < 0) perror("fake_nvml: FAKE_NVML_CALLS");
        close(file);
    }
    free(text);
}

static void before_fork(void) { pthread_mutex_lock(&registering); }
static void in_parent(void) { pthread_mutex_unlock(&registering); }
static void in_child(void) {
    for (Call *call = calls; call; call = call->next) atomic_store(&call->count, 0); /* the parent writes those */
    atomic_store(&forked, atomic_load(&init_count) > 0);
    pthread_mutex_unlock(&registering);
}

__attribute__((constructor(103))) static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }
__attribute__((destructor)) static void leave(void) { calls_write(); }
