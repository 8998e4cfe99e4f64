/* What each call costs: the profile of a real H200 (driver 580.159.04), or what the scenario says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"

/* Microseconds of one call in a burst, the caller's own overhead taken off. All of it is CPU except where `wait` says. */
static const struct { const char *name; double busy, wait; } H200[] = {
    {"nvmlInit", 4500, 7500}, {"nvmlInit_v2", 4500, 7500}, {"nvmlInitWithFlags", 4500, 7500},
    {"nvmlShutdown", 300, 100},
    {"nvmlDeviceGetPcieThroughput", 670, 20080},
    {"nvmlDeviceGetInforomConfigurationChecksum", 69300, 0}, {"nvmlDeviceValidateInforom", 69600, 0},
    {"nvmlDeviceGetPciInfoExt", 1750, 0}, {"nvmlDeviceGetPlatformInfo", 97, 0}, {"nvmlDeviceGetGpuFabricInfoV", 7, 0},
    {"nvmlDeviceGetTotalEnergyConsumption", 3300, 0},
    {"nvmlDeviceGetCurrentClockFreqs", 3450, 0},
    {"nvmlDeviceGetMaxClockInfo", 1300, 0}, {"nvmlDeviceGetMaxCustomerBoostClock", 1300, 0},
    {"nvmlDeviceGetApplicationsClock", 970, 0}, {"nvmlDeviceGetDefaultApplicationsClock", 970, 0},
    {"nvmlDeviceGetSamples", 600, 0}, /* of power; those of utilization cost 1400 more */
    {"nvmlDeviceGetProcessUtilization", 880, 0}, /* asked twice for one answer */
    {"nvmlDeviceGetProcessesUtilizationInfo", 880, 0},
    {"nvmlDeviceGetDynamicPstatesInfo", 800, 0}, {"nvmlDeviceGetMarginTemperature", 800, 0},
    {"nvmlGpmMetricsGet", 1, 0}, /* and 1400 more when the graphics engine is asked: it alone is dear */
    {"nvmlDeviceGetViolationStatus", 640, 0},
    {"nvmlDeviceGetGpcClkVfOffset", 355, 0}, {"nvmlDeviceGetMemClkVfOffset", 350, 0},
    {"nvmlDeviceGetTemperatureThreshold", 2, 0}, /* of slowdown; any other costs 145 more */
    {"nvmlDeviceGetMemoryBusWidth", 172, 0}, {"nvmlDeviceGetGpcClkMinMaxVfOffset", 170, 0},
    {"nvmlDeviceGetMemClkMinMaxVfOffset", 166, 0}, {"nvmlDeviceGetPowerManagementMode", 168, 0},
    {"nvmlDeviceGetPowerManagementLimit", 163, 0}, {"nvmlDeviceGetPdi", 162, 0},
    {"nvmlDeviceGetDisplayActive", 158, 0}, {"nvmlDeviceGetDisplayMode", 153, 0},
    {"nvmlDeviceGetDefaultEccMode", 155, 0}, {"nvmlDeviceGetEccMode", 140, 0},
    {"nvmlDeviceGetAdaptiveClockInfoStatus", 153, 0}, {"nvmlDeviceGetPowerSource", 152, 0},
    {"nvmlDeviceGetRepairStatus", 152, 0}, {"nvmlDeviceGetPcieReplayCounter", 147, 0},
    {"nvmlDeviceGetMigMode", 134, 0}, {"nvmlDeviceGetMaxMigDeviceCount", 135, 0},
    {"nvmlDeviceGetNumGpuCores", 133, 0}, {"nvmlDeviceGetUnrepairableMemoryFlag_v1", 132, 0},
    {"nvmlDeviceGetBAR1MemoryInfo", 115, 0},
    {"nvmlGpmSampleGet", 40, 0}, {"nvmlGpmMigSampleGet", 40, 0},
    {"nvmlDeviceGetCurrPcieLinkWidth", 27, 0}, {"nvmlDeviceGetPcieLinkMaxSpeed", 29, 0}, {"nvmlDeviceGetPcieSpeed", 29, 0},
    {"nvmlDeviceGetConfComputeMemSizeInfo", 18, 0}, {"nvmlSystemGetConfComputeGpusReadyState", 22, 0},
    {"nvmlDeviceGetComputeRunningProcesses", 14, 0}, {"nvmlDeviceGetComputeRunningProcesses_v2", 14, 0},
    {"nvmlDeviceGetComputeRunningProcesses_v3", 14, 0},
    {"nvmlDeviceGetGraphicsRunningProcesses", 7, 0}, {"nvmlDeviceGetGraphicsRunningProcesses_v2", 7, 0},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", 7, 0},
    {"nvmlDeviceGetMPSComputeRunningProcesses", 9, 0}, {"nvmlDeviceGetMPSComputeRunningProcesses_v2", 9, 0},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", 9, 0},
    {"nvmlDeviceGetMemoryInfo", 7, 0}, {"nvmlDeviceGetMemoryInfo_v2", 7, 0},
    {"nvmlDeviceGetPersistenceMode", 6.5, 0}, {"nvmlDeviceGetAccountingMode", 6.7, 0},
    {"nvmlDeviceGetAccountingPids", 11, 0}, {"nvmlDeviceGetEncoderStats", 7, 0}, {"nvmlDeviceGetFBCStats", 6, 0},
    {"nvmlDeviceGetComputeMode", 5, 0}, {"nvmlDeviceGetIrqNum", 7, 0}, {"nvmlDeviceGetSupportedMemoryClocks", 6, 0},
    {"nvmlDeviceGetBoardId", 4, 0}, {"nvmlDeviceGetGspFirmwareVersion", 3.5, 0}, {"nvmlDeviceGetUUID", 3.5, 0},
    {"nvmlDeviceGetRemappedRows", 3, 0}, {"nvmlDeviceGetMultiGpuBoard", 2.6, 0}, {"nvmlDeviceGetTemperatureV", 2.5, 0},
    {"nvmlDeviceGetSerial", 2, 0}, {"nvmlDeviceGetTotalEccErrors", 2, 0}, {"nvmlDeviceGetName", 1.8, 0},
    {"nvmlDeviceGetFieldValues", 0, 0}, /* each field has its own */
};

static bool as_h200;

bool latency_scripted(void) { return as_h200; }

/* After the scenario is read; the environment has the last word. */
__attribute__((constructor(104))) static void choose_profile(void) {
    const char *asked = getenv("FAKE_NVML_LATENCY");
    const Value *profile = table_find(&scenario.latency, "profile");
    if (!asked || !*asked) asked = profile ? profile->text : "none";
    as_h200 = !strcmp(asked, "h200");
}

/* "500" and "busy 500" spin, "wait 500" sleeps, "busy 5000 wait 7000" does both. */
static void override(Call *call, const char *text) {
    char kind[8];
    double amount;
    int used;
    if (sscanf(text, "%lf", &amount) == 1) { call->busy = amount; call->wait = 0; return; }
    call->busy = call->wait = 0;
    while (sscanf(text, " %7[a-z] %lf%n", kind, &amount, &used) == 2) {
        *(strcmp(kind, "wait") ? &call->busy : &call->wait) = amount;
        text += used;
    }
}

void latency_of(Call *call) {
    const char *asked = getenv("FAKE_NVML_LATENCY");
    if (latency_scripted()) {
        call->busy = 0.8;
        for (size_t i = 0; i < COUNT(H200); i++)
            if (!strcmp(call->name, H200[i].name)) { call->busy = H200[i].busy; call->wait = H200[i].wait; }
    }
    const Value *own = table_find(&scenario.latency, call->name);
    if (own && !(asked && !strcmp(asked, "none"))) override(call, own->text);
}

void rest(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) && errno == EINTR) {}
}

/* Short spins read the cheap clock; long ones burn CPU time, which a busy machine must not shorten. */
static void burn(double microseconds) {
    clockid_t clock = microseconds < 20 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    struct timespec start, now;
    clock_gettime(clock, &start);
    do clock_gettime(clock, &now);
    while ((double)(now.tv_sec - start.tv_sec) * 1e6 + (double)(now.tv_nsec - start.tv_nsec) / 1e3 < microseconds);
}

void spend(double busy, double wait) {
    if (busy > 0) burn(busy);
    if (wait > 0) rest(wait / 1e6);
}
