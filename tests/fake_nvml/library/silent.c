/* Exported because a client may look for them, with nothing to say; `<function> = error CODE` in a scenario changes the code. */
#include "fake.h"

SILENT(nvmlDeviceGetAPIRestriction, NOT_SUPPORTED)
SILENT(nvmlDeviceGetAccountingStats_v2, NOT_SUPPORTED)
SILENT(nvmlDeviceGetActiveVgpus, NOT_SUPPORTED)
SILENT(nvmlDeviceGetAdaptiveTgpModeInfo_v1, NOT_SUPPORTED)
SILENT(nvmlDeviceGetBankRemapperStatus_v1, NOT_SUPPORTED)
SILENT(nvmlDeviceGetBridgeChipInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetClkMonStatus, NOT_SUPPORTED)
SILENT(nvmlDeviceGetClockOffsets, NOT_SUPPORTED)
SILENT(nvmlDeviceGetConfComputeGpuAttestationReport, NOT_SUPPORTED)
SILENT(nvmlDeviceGetCoolerInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetCpuAffinityWithinScope, NOT_SUPPORTED)
SILENT(nvmlDeviceGetCreatableVgpus, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuFabricInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuFabricInfo_v4, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuInstanceById, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuInstancePossiblePlacements_v2, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuInstanceProfileInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuInstanceProfileInfoByIdV, NOT_SUPPORTED)
SILENT(nvmlDeviceGetGpuInstances, NOT_SUPPORTED)
SILENT(nvmlDeviceGetHostVgpuMode, NOT_SUPPORTED)
SILENT(nvmlDeviceGetMemoryLimits_v1, NOT_SUPPORTED)
SILENT(nvmlDeviceGetMinMaxClockOfPState, NOT_SUPPORTED)
SILENT(nvmlDeviceGetNvLinkInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetNvLinkTelemetrySamples_v1, NOT_SUPPORTED)
SILENT(nvmlDeviceGetNvlinkBwMode, NOT_SUPPORTED)
SILENT(nvmlDeviceGetNvlinkSupportedBwModes, NOT_SUPPORTED)
SILENT(nvmlDeviceGetPgpuMetadataString, NOT_SUPPORTED)
SILENT(nvmlDeviceGetPowerMizerMode_v1, NOT_SUPPORTED)
SILENT(nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, NOT_SUPPORTED)
SILENT(nvmlDeviceGetSupportedVgpus, NOT_SUPPORTED)
SILENT(nvmlDeviceGetThermalSettings, NOT_SUPPORTED)
SILENT(nvmlDeviceGetTopologyNearestGpus, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuCapabilities, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuHeterogeneousMode, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuInstancesUtilizationInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuMetadata, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuProcessUtilization, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuProcessesUtilizationInfo, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuSchedulerCapabilities, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuSchedulerLog, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuSchedulerLog_v2, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuSchedulerState, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuSchedulerState_v2, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuTypeCreatablePlacements, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuTypeSupportedPlacements, NOT_SUPPORTED)
SILENT(nvmlDeviceGetVgpuUtilization, NOT_SUPPORTED)
SILENT(nvmlDeviceGetConfComputeGpuCertificate, UNKNOWN)
SILENT(nvmlDeviceGetBBXTimeData_v1, FUNCTION_NOT_FOUND)
SILENT(nvmlDeviceGetLastBBXFlushTime, NOT_READY)

/* Changing anything takes root, and no scenario plays root. */
SILENT(nvmlDeviceClearAccountingPids, NO_PERMISSION)
SILENT(nvmlDeviceClearCpuAffinity, NO_PERMISSION)
SILENT(nvmlDeviceClearEccErrorCounts, NO_PERMISSION)
SILENT(nvmlDeviceResetApplicationsClocks, NO_PERMISSION)
SILENT(nvmlDeviceResetGpuLockedClocks, NO_PERMISSION)
SILENT(nvmlDeviceResetMemoryLockedClocks, NO_PERMISSION)
SILENT(nvmlDeviceResetNvLinkErrorCounters, NO_PERMISSION)
SILENT(nvmlDeviceSetAPIRestriction, NO_PERMISSION)
SILENT(nvmlDeviceSetAccountingMode, NO_PERMISSION)
SILENT(nvmlDeviceSetApplicationsClocks, NO_PERMISSION)
SILENT(nvmlDeviceSetAutoBoostedClocksEnabled, NO_PERMISSION)
SILENT(nvmlDeviceSetComputeMode, NO_PERMISSION)
SILENT(nvmlDeviceSetCpuAffinity, NO_PERMISSION)
SILENT(nvmlDeviceSetDefaultFanSpeed_v2, NO_PERMISSION)
SILENT(nvmlDeviceSetDriverModel, NO_PERMISSION)
SILENT(nvmlDeviceSetEccMode, NO_PERMISSION)
SILENT(nvmlDeviceSetFanControlPolicy, NO_PERMISSION)
SILENT(nvmlDeviceSetFanSpeed_v2, NO_PERMISSION)
SILENT(nvmlDeviceSetGpcClkVfOffset, NO_PERMISSION)
SILENT(nvmlDeviceSetGpuLockedClocks, NO_PERMISSION)
SILENT(nvmlDeviceSetGpuOperationMode, NO_PERMISSION)
SILENT(nvmlDeviceSetMemClkVfOffset, NO_PERMISSION)
SILENT(nvmlDeviceSetMemoryLockedClocks, NO_PERMISSION)
SILENT(nvmlDeviceSetMigMode, NO_PERMISSION)
SILENT(nvmlDeviceSetPersistenceMode, NO_PERMISSION)
SILENT(nvmlDeviceSetPowerManagementLimit, NO_PERMISSION)
SILENT(nvmlDeviceSetPowerManagementLimit_v2, NO_PERMISSION)
SILENT(nvmlDeviceSetTemperatureThreshold, NO_PERMISSION)
SILENT(nvmlDeviceSetVirtualizationMode, NO_PERMISSION)

SILENT_SYSTEM(nvmlSystemGetConfComputeSettings, NOT_SUPPORTED)
SILENT_SYSTEM(nvmlSystemGetTopologyGpuSet, NOT_SUPPORTED)
SILENT_SYSTEM(nvmlUnitGetHandleByIndex, INVALID_ARGUMENT)
SILENT_SYSTEM(nvmlGetExcludedDeviceInfoByIndex, INVALID_ARGUMENT)

/* Things there are none of. */
#define NONE_OF(function)                              \
    EXPORT nvmlReturn_t function(unsigned *count) {    \
        ENTER_SYSTEM(function);                        \
        if (!count) return INVALID_ARGUMENT;           \
        *count = 0;                                    \
        return SUCCESS; }
NONE_OF(nvmlUnitGetCount)
NONE_OF(nvmlGetExcludedDeviceCount)

typedef struct {
    unsigned code, state;
    char license[128], product[128];
    unsigned enabled, year;
    uint16_t month, day, hour, minute, second;
    uint8_t status;
} Feature;
typedef struct { int supported; unsigned count; Feature features[3]; } Features;

EXPORT nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t handle, Features *out) {
    ENTER(nvmlDeviceGetGridLicensableFeatures_v4, handle);
    if (!out) return INVALID_ARGUMENT;
    *out = (Features){0};
    return SUCCESS;
}
