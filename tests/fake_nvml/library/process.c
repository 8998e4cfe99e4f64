/* Process lists, in the record size of each version, and per-process utilisation. */
#include <string.h>
#include <unistd.h>

#include "fake.h"

enum { PHANTOM_PID = 0x7F000000 }; /* no kernel gives out such a pid */

static unsigned pid_of(const Process *process) {
    return process->pid == PID_SELF ? (unsigned)getpid() : process->pid == PID_PARENT ? (unsigned)getppid() : (unsigned)process->pid;
}

static bool runs_on(const Process *process, const Gpu *gpu) {
    double now = elapsed();
    if (gpu->index < process->first || gpu->index > process->last) return false;
    if (gpu->parent && (process->gi != gpu->gi || process->ci != gpu->ci)) return false;
    return now >= process->from && now < process->until;
}

static void store(char *record, size_t size, unsigned pid, uint64_t memory, unsigned gi, unsigned ci) {
    ProcessV3 full = {.pid = pid, .memory = memory, .gi = gi, .ci = ci};
    memcpy(record, &full, size); /* each older record is the beginning of the newer */
}

/* Size query: *count = 0 or no buffer, answered with the size needed. */
static nvmlReturn_t list(Gpu *gpu, unsigned which, size_t size, unsigned *count, void *out) {
    unsigned found = 0;
    const Value *refusal = table_find(&gpu->table, "processes");
    if (!count) return INVALID_ARGUMENT;
    if (refusal && refusal->kind == ERROR) return refusal->code;
    unsigned room = out ? *count : 0;
    for (int i = 0; i < scenario.process_count; i++) {
        const Process *process = &scenario.processes[i];
        if (!(process->lists & which) || !runs_on(process, gpu)) continue;
        if (found < room)
            store((char *)out + found * size, size, pid_of(process), whole_at(&process->memory, gpu, elapsed()), process->gi, process->ci);
        found++;
    }
    /* processes.grow: what joins (or, negative, leaves) between the size query and the fetch */
    int grow = which == LIST_COMPUTE && room ? (int)read_or(gpu, "processes.grow", 0) : 0;
    /* processes.churn: what comes at one call and is gone at the next */
    if (which == LIST_COMPUTE && table_find(&gpu->table, "processes.churn"))
        grow += atomic_fetch_add(&gpu->list_calls, 1) % 2 ? (int)read_or(gpu, "processes.churn", 0) : 0;
    for (; grow < 0 && found; grow++) found--;
    for (int i = 0; i < grow; i++, found++)
        if (found < room) store((char *)out + found * size, size, PHANTOM_PID + (unsigned)i, 1 << 20, NO_INSTANCE, NO_INSTANCE);
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

static size_t latest_record(void) {
    const Value *size = table_find(&scenario.driver, "process_record");
    return size && size->whole == sizeof(ProcessV3) ? sizeof(ProcessV3) : sizeof(ProcessV2);
}

#define PROCESS_LIST(function, which, size)                                                 \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *count, void *out) {         \
        ENTER(function, handle);                                                            \
        return list(gpu, which, size, count, out); }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE, sizeof(ProcessV1))
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, LIST_COMPUTE, sizeof(ProcessV2))
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, LIST_COMPUTE, latest_record())
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS, sizeof(ProcessV1))
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, LIST_GRAPHICS, sizeof(ProcessV2))
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, LIST_GRAPHICS, latest_record())
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS, sizeof(ProcessV1))
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, LIST_MPS, sizeof(ProcessV2))
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, LIST_MPS, latest_record())

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle, ProcessDetailList *out) {
    ENTER(nvmlDeviceGetRunningProcessDetailList, handle);
    static const unsigned modes[] = {LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS, LIST_COMPUTE | LIST_GRAPHICS | LIST_MPS};
    if (!out || out->mode >= COUNT(modes)) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(ProcessDetailList, 1)) return ARGUMENT_VERSION_MISMATCH;
    return list(gpu, modes[out->mode], sizeof(ProcessV3), &out->count, out->records);
}

typedef void (*StoreSample)(void *records, unsigned at, const ProcessSampleV2 *sample);

/* NOT_FOUND when nothing is newer than last_seen; INSUFFICIENT_SIZE when there is no room for what is. */
static nvmlReturn_t samples(const Gpu *gpu, uint64_t last_seen, unsigned *count, void *out, StoreSample keep) {
    double now = elapsed(), clock = wall_clock();
    unsigned found = 0;
    const Value *refusal = table_find(&gpu->table, "processes.utilization");
    if (!count) return INVALID_ARGUMENT;
    if (refusal && refusal->kind == ERROR) return refusal->code;
    unsigned room = out ? *count : 0;
    for (int i = 0; i < scenario.process_count; i++) {
        const Process *process = &scenario.processes[i];
        ProcessSampleV2 sample = {.time = (uint64_t)((clock - process->age) * 1e6)};
        if (!process->sampled || sample.time <= last_seen || !runs_on(process, gpu)) continue;
        if (found < room) {
            sample.pid = pid_of(process);
            sample.sm = (unsigned)whole_at(&process->sm, gpu, now);
            sample.mem = (unsigned)whole_at(&process->mem, gpu, now);
            sample.enc = (unsigned)whole_at(&process->enc, gpu, now);
            sample.dec = (unsigned)whole_at(&process->dec, gpu, now);
            keep(out, found, &sample);
        }
        found++;
    }
    *count = found;
    return !found ? NOT_FOUND : found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

static void keep_old(void *records, unsigned at, const ProcessSampleV2 *s) {
    ((ProcessSample *)records)[at] = (ProcessSample){s->pid, s->time, s->sm, s->mem, s->enc, s->dec};
}

static void keep_new(void *records, unsigned at, const ProcessSampleV2 *s) { ((ProcessSampleV2 *)records)[at] = *s; }

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle, ProcessSample *out, unsigned *count, uint64_t last_seen) {
    ENTER(nvmlDeviceGetProcessUtilization, handle);
    return samples(gpu, last_seen, count, out, keep_old);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle, ProcessSampleList *out) {
    ENTER(nvmlDeviceGetProcessesUtilizationInfo, handle);
    if (!out) return INVALID_ARGUMENT;
    if (out->version != VERSION_OF(ProcessSampleList, 1)) return ARGUMENT_VERSION_MISMATCH;
    return samples(gpu, out->last_seen, &out->count, out->records, keep_new);
}
