/* The sections of a scenario: [driver] [latency] [gpu] [gpu N] [process] [instance] [fault] [xid]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static enum { NONE, DRIVER, LATENCY, GPUS, PROCESS, INSTANCE, FAULT, XID } section;
static int first_gpu, last_gpu; /* of the open [gpu ...]; first_gpu < 0: defaults for all */
static int highest_gpu = -1;
static Table defaults;

static bool open_process(void) {
    size_t size = sizeof(Process) * (size_t)(scenario.process_count + 1);
    scenario.processes = realloc(scenario.processes, size);
    scenario.processes[scenario.process_count++] = (Process){
        .pid = PID_SELF, .lists = LIST_COMPUTE, .age = 0.1, .until = INFINITY, .gi = NO_INSTANCE, .ci = NO_INSTANCE};
    return section = PROCESS, true;
}

static bool open_fault(void) {
    if (scenario.fault_count == MAX_FAULTS) return false;
    Fault *fault = &scenario.faults[scenario.fault_count++];
    fault->first = -1;
    fault->every = 1;
    fault->until = INFINITY;
    strcpy(fault->function, "*");
    return section = FAULT, true;
}

static bool open_instance(int gpu) {
    if (scenario.instance_count == MAX_INSTANCES) return false;
    Gpu *instance = &scenario.instances[scenario.instance_count++];
    instance->index = gpu;
    instance->slot = NO_INSTANCE;
    return section = INSTANCE, true;
}

static bool open_xid(void) {
    if (scenario.xid_count == MAX_XIDS) return false;
    scenario.xids[scenario.xid_count++] = (Xid){.type = 8, .gi = NO_INSTANCE, .ci = NO_INSTANCE};
    return section = XID, true;
}

bool section_open(const char *header) {
    int number;
    if (!strcmp(header, "driver")) return section = DRIVER, true;
    if (!strcmp(header, "latency")) return section = LATENCY, true;
    if (!strcmp(header, "process")) return open_process();
    if (!strcmp(header, "fault")) return open_fault();
    if (!strcmp(header, "xid")) return open_xid();
    if (!strcmp(header, "instance")) return open_instance(0);
    if (sscanf(header, "mig %d", &number) == 1) return number >= 0 && number < MAX_GPUS && open_instance(number);
    if (!strcmp(header, "gpu")) return section = GPUS, first_gpu = -1, true;
    if (strncmp(header, "gpu ", 4) || !range_parse(header + 4, &first_gpu, &last_gpu)) return false;
    if (!strcmp(header + 4, "all")) return section = GPUS, first_gpu = -1, true;
    highest_gpu = last_gpu > highest_gpu ? last_gpu : highest_gpu;
    return section = GPUS, true;
}

static const char *put(Table *table, const char *key, const char *text) {
    return value_parse(text, table_put(table, key)) ? NULL : "bad value";
}

static const char *set_gpu(const char *key, const char *text) {
    if (first_gpu < 0) return put(&defaults, key, text);
    for (int i = first_gpu; i <= last_gpu; i++) {
        const char *complaint = put(&scenario.gpus[i].table, key, text);
        if (complaint) return complaint;
    }
    return NULL;
}

static const char *seconds_into(double *out, const char *text) {
    *out = duration(text);
    return isnan(*out) ? "bad duration" : NULL;
}

static const char *one_gpu(const char *text, int *out) {
    int last;
    return range_parse(text, out, &last) && *out == last ? NULL : "bad GPU";
}

static const char *set_process(Process *process, const char *key, const char *text) {
    struct { const char *key; Value *value; } values[] = {
        {"sm", &process->sm}, {"mem", &process->mem}, {"enc", &process->enc}, {"dec", &process->dec}};
    for (size_t i = 0; i < COUNT(values); i++)
        if (!strcmp(key, values[i].key)) {
            process->sampled = true;
            return value_parse(text, values[i].value) ? NULL : "bad value";
        }
    if (!strcmp(key, "memory")) return value_parse(text, &process->memory) ? NULL : "bad value";
    if (!strcmp(key, "gpu")) return range_parse(text, &process->first, &process->last) ? NULL : "bad GPU";
    if (!strcmp(key, "age")) return seconds_into(&process->age, text);
    if (!strcmp(key, "from")) return seconds_into(&process->from, text);
    if (!strcmp(key, "until")) return seconds_into(&process->until, text);
    if (!strcmp(key, "instance")) return sscanf(text, "%u/%u", &process->gi, &process->ci) == 2 ? NULL : "expected GI/CI";
    if (!strcmp(key, "type")) {
        process->lists = (strchr(text, 'C') ? LIST_COMPUTE : 0) | (strchr(text, 'G') ? LIST_GRAPHICS : 0) |
                         (strchr(text, 'M') ? LIST_MPS : 0);
        return process->lists ? NULL : "type is C, G, C+G or M";
    }
    if (strcmp(key, "pid")) return "no such key for a process";
    process->pid = !strcmp(text, "self") ? PID_SELF : !strcmp(text, "parent") ? PID_PARENT : (int)strtoul(text, NULL, 0);
    return NULL;
}

static const char *set_fault(Fault *fault, const char *key, const char *text) {
    if (!strcmp(key, "function")) return snprintf(fault->function, sizeof fault->function, "%s", text), NULL;
    if (!strcmp(key, "gpu")) return range_parse(text, &fault->first, &fault->last) ? NULL : "bad GPU";
    if (!strcmp(key, "code")) return error_code(text, &fault->code) ? NULL : "no such code";
    if (!strcmp(key, "hang")) return seconds_into(&fault->hang, text);
    if (!strcmp(key, "from")) return seconds_into(&fault->from, text);
    if (!strcmp(key, "until")) return seconds_into(&fault->until, text);
    if (!strcmp(key, "every")) return (fault->every = (unsigned)strtoul(text, NULL, 0)) ? NULL : "every is 1 or more";
    /* The library of such a scenario is built without the symbol; this is for a client that got another build. */
    if (!strcmp(key, "missing")) return strcmp(text, "yes") ? "missing is yes" : (fault->code = FUNCTION_NOT_FOUND, NULL);
    return "no such key for a fault";
}

static const char *set_instance(Gpu *instance, const char *key, const char *text) {
    if (!strcmp(key, "gpu")) return one_gpu(text, &instance->index);
    if (!strcmp(key, "gi")) return sscanf(text, "%u", &instance->gi) == 1 ? NULL : "bad GPU instance";
    if (!strcmp(key, "ci")) return sscanf(text, "%u", &instance->ci) == 1 ? NULL : "bad compute instance";
    if (!strcmp(key, "index")) return sscanf(text, "%u", &instance->slot) == 1 ? NULL : "bad index";
    return put(&instance->table, key, text);
}

static const char *set_xid(Xid *xid, const char *key, const char *text) {
    if (!strcmp(key, "gpu")) return one_gpu(text, &xid->gpu);
    if (!strcmp(key, "code")) return xid->data = strtoull(text, NULL, 0), NULL;
    if (!strcmp(key, "type")) return xid->type = strtoull(text, NULL, 0), NULL;
    if (!strcmp(key, "at")) return seconds_into(&xid->at, text);
    if (!strcmp(key, "instance")) return sscanf(text, "%u/%u", &xid->gi, &xid->ci) == 2 ? NULL : "expected GI/CI";
    return "no such key for an xid";
}

const char *section_set(const char *key, const char *text) {
    switch (section) {
    case DRIVER: return put(&scenario.driver, key, text);
    case LATENCY: return put(&scenario.latency, key, text);
    case GPUS: return set_gpu(key, text);
    case PROCESS: return set_process(&scenario.processes[scenario.process_count - 1], key, text);
    case INSTANCE: return set_instance(&scenario.instances[scenario.instance_count - 1], key, text);
    case FAULT: return set_fault(&scenario.faults[scenario.fault_count - 1], key, text);
    case XID: return set_xid(&scenario.xids[scenario.xid_count - 1], key, text);
    default: return "a key before any section";
    }
}

/* What every real GPU has and no scenario should have to spell out. */
static void give(Gpu *gpu, const char *key, const char *format, unsigned number) {
    char text[96];
    if (table_find(&gpu->table, key)) return;
    snprintf(text, sizeof text, format, number, number);
    value_parse(text, table_put(&gpu->table, key));
}

static void finish_gpu(Gpu *gpu, int index) {
    unsigned n = (unsigned)index;
    gpu->index = index;
    for (int i = 0; i < defaults.count; i++)
        if (!table_find(&gpu->table, defaults.entries[i].key))
            *table_put(&gpu->table, defaults.entries[i].key) = defaults.entries[i].value;
    give(gpu, "uuid", "GPU-%08x-1111-2222-3333-%012x", n);
    give(gpu, "serial", "\"16500000000%02u\"", n);
    give(gpu, "pci.bus_id", "00000000:%02X:00.0", 0x10 + n);
    give(gpu, "minor", "%u", n);
    give(gpu, "index", "%u", n);
    give(gpu, "board_id", "%u", (0x10 + n) << 8);
    gpu->every = table_find(&gpu->table, "every");
    for (int i = 0; i < gpu->table.count; i++) gpu->replayed |= !strncmp(gpu->table.entries[i].key, "nvml", 4);
}

static void finish_instance(Gpu *instance, int number) {
    static const char *const inherited[] = {
        "brand", "architecture", "compute_capability", "pci.bus_id", "pci.device_id", "pci.subsystem_id"};
    char text[256];
    Gpu *parent = instance->parent = &scenario.gpus[instance->index];
    if (instance->slot == NO_INSTANCE) {
        instance->slot = 0;
        for (int i = 0; i < number; i++) instance->slot += scenario.instances[i].parent == parent;
    }
    for (size_t i = 0; i < COUNT(inherited); i++) {
        const Value *value = table_find(&parent->table, inherited[i]);
        if (value && !table_find(&instance->table, inherited[i])) *table_put(&instance->table, inherited[i]) = *value;
    }
    const Value *name = table_find(&parent->table, "name"), *profile = table_find(&instance->table, "profile");
    if (name && !table_find(&instance->table, "name")) {
        snprintf(text, sizeof text, "%s MIG %s", name->text, profile ? profile->text : "1g");
        value_parse(text, table_put(&instance->table, "name"));
    }
    give(instance, "uuid", "MIG-%08x-5555-6666-7777-%012x", (unsigned)number);
    give(instance, "index", "%u", instance->slot);
}

void section_finish(void) {
    const Value *count = table_find(&scenario.driver, "gpus");
    scenario.gpu_count = count ? (int)count->whole : highest_gpu + 1;
    if (scenario.gpu_count > MAX_GPUS) scenario.gpu_count = MAX_GPUS;
    for (int i = 0; i < scenario.gpu_count; i++) finish_gpu(&scenario.gpus[i], i);
    for (int i = 0; i < scenario.instance_count; i++)
        if (scenario.instances[i].index < scenario.gpu_count) finish_instance(&scenario.instances[i], i);
        else scenario.loaded = false;
}
