"""NVML's structures, as far as gpulse uses them, one line each; a test compares their layout with nvidia-ml-py's.

A field is its name and, unless it is an unsigned int, its type; for an array, its length follows.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_INSTANCE = 0xFFFFFFFF
ALL_ONES_64 = 0xFFFFFFFFFFFFFFFF
_TYPES: dict[str, Any] = {
    "": ctypes.c_uint, "u8": ctypes.c_ubyte, "u16": ctypes.c_ushort, "u64": ctypes.c_ulonglong, "i32": ctypes.c_int,
    "i64": ctypes.c_longlong, "double": ctypes.c_double, "text": ctypes.c_char, "pointer": ctypes.c_void_p,
}  # fmt: skip


def _structure(name: str, fields: str, base: type = ctypes.Structure) -> Any:
    made = []
    for field in fields.split():
        word, kind, length = (*field.split(":"), "", "")[:3]
        made.append((word, _TYPES[kind] * int(length) if length else _TYPES[kind]))
    _TYPES[name] = type(name, (base,), {"_fields_": made, "__module__": __name__})
    return _TYPES[name]


Utilization = _structure("Utilization", "gpu memory")
MemoryInfo = _structure("MemoryInfo", "total:u64 free:u64 used:u64")
MemoryV2 = _structure("MemoryV2", "version total:u64 reserved:u64 free:u64 used:u64")
Bar1Memory = _structure("Bar1Memory", "bar1Total:u64 bar1Free:u64 bar1Used:u64")
PciInfo = _structure("PciInfo", "busIdLegacy:text:16 domain bus device pciDeviceId pciSubSystemId busId:text:32")
PciInfoExtended = _structure(
    "PciInfoExtended", "version domain bus device pciDeviceId pciSubSystemId baseClass subClass busId:text:32"
)
TemperatureV1 = _structure("TemperatureV1", "version sensorType temperature:i32")
MarginTemperature = _structure("MarginTemperature", "version marginTemperature:i32")

# the processes of a GPU: drivers before 450 have no instances; the second is that of both _v2 and _v3
ProcessV1 = _structure("ProcessV1", "pid usedGpuMemory:u64")
ProcessV2 = _structure("ProcessV2", "pid usedGpuMemory:u64 gpuInstanceId computeInstanceId")
# of _v3 in drivers 535.43 to 535.86 only: one more field, which would shift every record but the first
ProcessV3Early = _structure(
    "ProcessV3Early", "pid usedGpuMemory:u64 gpuInstanceId computeInstanceId usedGpuCcProtectedMemory:u64"
)
ProcessUtilization = _structure("ProcessUtilization", "pid timeStamp:u64 smUtil memUtil encUtil decUtil")
AccountingStats = _structure(
    "AccountingStats",
    "gpuUtilization memoryUtilization maxMemoryUsage:u64 time:u64 startTime:u64 isRunning reserved::5",
)
FbcStats = _structure("FbcStats", "sessionsCount averageFPS averageLatency")

FieldUnion = _structure(
    "FieldUnion", "dVal:double uiVal ulVal:u64 ullVal:u64 sllVal:i64 siVal:i32 usVal:u16", ctypes.Union
)
FieldValue = _structure(
    "FieldValue", "fieldId scopeId timestamp:i64 latencyUsec:i64 valueType nvmlReturn value:FieldUnion"
)
SampleValue = _structure("SampleValue", "timeStamp:u64 sampleValue:FieldUnion")
GpmMetricInfo = _structure("GpmMetricInfo", "shortName:pointer longName:pointer unit:pointer")
GpmMetric = _structure("GpmMetric", "metricId nvmlReturn value:double metricInfo:GpmMetricInfo")
# the driver reads only the first numMetrics entries, so the array may be shorter than NVML's
GpmMetricsGet = _structure("GpmMetricsGet", "version numMetrics sample1:pointer sample2:pointer metrics:GpmMetric:32")
GpmSupport = _structure("GpmSupport", "version isSupportedDevice")
EventData = _structure("EventData", "device:pointer eventType:u64 eventData:u64 gpuInstanceId computeInstanceId")

MigAttributes = _structure(
    "MigAttributes",
    "multiprocessorCount sharedCopyEngineCount sharedDecoderCount sharedEncoderCount sharedJpegCount sharedOfaCount"
    " gpuInstanceSliceCount computeInstanceSliceCount memorySizeMB:u64",
)
MigProfile = _structure(  # version 2, which has the profile's name
    "MigProfile",
    "version id isP2pSupported sliceCount instanceCount multiprocessorCount copyEngineCount decoderCount encoderCount"
    " jpegCount ofaCount memorySizeMB:u64 name:text:96",
)
C2cMode = _structure("C2cMode", "isC2cEnabled")
AddressingMode = _structure("AddressingMode", "version value")
DramEncryption = _structure("DramEncryption", "version encryptionState")
Hostname = _structure("Hostname", "value:text:64")
Platform = _structure(
    "Platform",
    "version ibGuid:u8:16 chassisSerialNumber:text:16 slotNumber:u8 trayIndex:u8 hostId:u8 peerType:u8 moduleId:u8",
)
# version 3; version 2 is the same without the summary; the driver sets only the lowest byte of the state
Fabric = _structure("Fabric", "version clusterUuid:u8:16 status cliqueId state healthMask healthSummary:u8")
Pdi = _structure("Pdi", "version value:u64")
Capabilities = _structure("Capabilities", "version capMask")

SramErrors = _structure(
    "SramErrors",
    "version aggregateUncParity:u64 aggregateUncSecDed:u64 aggregateCor:u64 volatileUncParity:u64 volatileUncSecDed:u64"
    " volatileCor:u64 aggregateUncBucketL2:u64 aggregateUncBucketSm:u64 aggregateUncBucketPcie:u64"
    " aggregateUncBucketMcu:u64 aggregateUncBucketOther:u64 bThresholdExceeded",
)
RemappedRows = _structure(
    "RemappedRows",
    "corrActiveRemaps corrInactiveRemaps uncActiveRemaps uncInactiveRemaps bPending bfailureOccurred",
)
RemapHistogram = _structure("RemapHistogram", "max high partial low none")
RepairStatus = _structure("RepairStatus", "version bChannelRepairPending bTpcRepairPending")
UnrepairableMemory = _structure("UnrepairableMemory", "version unrepairableMemory")
