"""NVML's structures, as far as gpulse uses them; a test compares their layout with nvidia-ml-py's."""

from __future__ import annotations

from ctypes import (
    Structure,
    Union,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_longlong,
    c_ubyte,
    c_uint,
    c_ulonglong,
    c_ushort,
    c_void_p,
)

NO_INSTANCE = 0xFFFFFFFF
ALL_ONES_64 = 0xFFFFFFFFFFFFFFFF


class Utilization(Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class MemoryInfo(Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(Structure):
    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class Bar1Memory(Structure):
    _fields_ = [("bar1Total", c_ulonglong), ("bar1Free", c_ulonglong), ("bar1Used", c_ulonglong)]


class PciInfo(Structure):
    _fields_ = [
        ("busIdLegacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint),
        ("busId", c_char * 32),
    ]


class TemperatureV1(Structure):
    _fields_ = [("version", c_uint), ("sensorType", c_uint), ("temperature", c_int)]


class ProcessV1(Structure):
    """Used by drivers before 450: no instances."""

    _fields_ = [("pid", c_uint), ("usedGpuMemory", c_ulonglong)]


class ProcessV2(Structure):
    """Used by both _v2 and _v3 calls."""

    _fields_ = [
        ("pid", c_uint),
        ("usedGpuMemory", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    ]


class ProcessV3Early(Structure):
    """Used by _v3 in drivers 535.43 to 535.86 only: one more field, which would shift every record but the first."""

    _fields_ = [
        ("pid", c_uint),
        ("usedGpuMemory", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
        ("usedGpuCcProtectedMemory", c_ulonglong),
    ]


class ProcessUtilization(Structure):
    _fields_ = [
        ("pid", c_uint),
        ("timeStamp", c_ulonglong),
        ("smUtil", c_uint),
        ("memUtil", c_uint),
        ("encUtil", c_uint),
        ("decUtil", c_uint),
    ]


class FieldUnion(Union):
    _fields_ = [
        ("dVal", c_double),
        ("uiVal", c_uint),
        ("ulVal", c_ulonglong),
        ("ullVal", c_ulonglong),
        ("sllVal", c_longlong),
        ("siVal", c_int),
        ("usVal", c_ushort),
    ]


class FieldValue(Structure):
    _fields_ = [
        ("fieldId", c_uint),
        ("scopeId", c_uint),
        ("timestamp", c_longlong),
        ("latencyUsec", c_longlong),
        ("valueType", c_uint),
        ("nvmlReturn", c_uint),
        ("value", FieldUnion),
    ]


class GpmMetricInfo(Structure):
    _fields_ = [("shortName", c_char_p), ("longName", c_char_p), ("unit", c_char_p)]


class GpmMetric(Structure):
    _fields_ = [("metricId", c_uint), ("nvmlReturn", c_uint), ("value", c_double), ("metricInfo", GpmMetricInfo)]


class GpmMetricsGet(Structure):
    """The driver reads only the first numMetrics entries, so the array may be shorter than NVML's."""

    _fields_ = [
        ("version", c_uint),
        ("numMetrics", c_uint),
        ("sample1", c_void_p),
        ("sample2", c_void_p),
        ("metrics", GpmMetric * 32),
    ]


class GpmSupport(Structure):
    _fields_ = [("version", c_uint), ("isSupportedDevice", c_uint)]


class MigAttributes(Structure):
    _fields_ = [
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
        ("gpuInstanceSliceCount", c_uint),
        ("computeInstanceSliceCount", c_uint),
        ("memorySizeMB", c_ulonglong),
    ]


class EventData(Structure):
    _fields_ = [
        ("device", c_void_p),
        ("eventType", c_ulonglong),
        ("eventData", c_ulonglong),
        ("gpuInstanceId", c_uint),
        ("computeInstanceId", c_uint),
    ]


class PciInfoExtended(Structure):
    _fields_ = [
        ("version", c_uint),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint),
        ("baseClass", c_uint),
        ("subClass", c_uint),
        ("busId", c_char * 32),
    ]


class MarginTemperature(Structure):
    _fields_ = [("version", c_uint), ("marginTemperature", c_int)]


class C2cMode(Structure):
    _fields_ = [("isC2cEnabled", c_uint)]


class DramEncryption(Structure):
    _fields_ = [("version", c_uint), ("encryptionState", c_uint)]


class Hostname(Structure):
    _fields_ = [("value", c_char * 64)]


class Platform(Structure):
    _fields_ = [
        ("version", c_uint),
        ("ibGuid", c_ubyte * 16),
        ("chassisSerialNumber", c_char * 16),
        ("slotNumber", c_ubyte),
        ("trayIndex", c_ubyte),
        ("hostId", c_ubyte),
        ("peerType", c_ubyte),
        ("moduleId", c_ubyte),
    ]


class Fabric(Structure):
    """Version 3; version 2 is the same without the summary. The driver sets only the lowest byte of the state."""

    _fields_ = [
        ("version", c_uint),
        ("clusterUuid", c_ubyte * 16),
        ("status", c_uint),
        ("cliqueId", c_uint),
        ("state", c_uint),
        ("healthMask", c_uint),
        ("healthSummary", c_ubyte),
    ]


class SramErrors(Structure):
    _fields_ = [
        ("version", c_uint),
        ("aggregateUncParity", c_ulonglong),
        ("aggregateUncSecDed", c_ulonglong),
        ("aggregateCor", c_ulonglong),
        ("volatileUncParity", c_ulonglong),
        ("volatileUncSecDed", c_ulonglong),
        ("volatileCor", c_ulonglong),
        ("aggregateUncBucketL2", c_ulonglong),
        ("aggregateUncBucketSm", c_ulonglong),
        ("aggregateUncBucketPcie", c_ulonglong),
        ("aggregateUncBucketMcu", c_ulonglong),
        ("aggregateUncBucketOther", c_ulonglong),
        ("bThresholdExceeded", c_uint),
    ]


class RemappedRows(Structure):
    _fields_ = [
        ("corrActiveRemaps", c_uint),
        ("corrInactiveRemaps", c_uint),
        ("uncActiveRemaps", c_uint),
        ("uncInactiveRemaps", c_uint),
        ("bPending", c_uint),
        ("bfailureOccurred", c_uint),
    ]


class RemapHistogram(Structure):
    _fields_ = [("max", c_uint), ("high", c_uint), ("partial", c_uint), ("low", c_uint), ("none", c_uint)]


class Pdi(Structure):
    _fields_ = [("version", c_uint), ("value", c_ulonglong)]


class RepairStatus(Structure):
    _fields_ = [("version", c_uint), ("bChannelRepairPending", c_uint), ("bTpcRepairPending", c_uint)]


class UnrepairableMemory(Structure):
    _fields_ = [("version", c_uint), ("unrepairableMemory", c_uint)]


class Capabilities(Structure):
    _fields_ = [("version", c_uint), ("capMask", c_uint)]


class FbcStats(Structure):
    _fields_ = [("sessionsCount", c_uint), ("averageFPS", c_uint), ("averageLatency", c_uint)]


class SampleValue(Structure):
    _fields_ = [("timeStamp", c_ulonglong), ("sampleValue", FieldUnion)]


class AccountingStats(Structure):
    _fields_ = [
        ("gpuUtilization", c_uint),
        ("memoryUtilization", c_uint),
        ("maxMemoryUsage", c_ulonglong),
        ("time", c_ulonglong),
        ("startTime", c_ulonglong),
        ("isRunning", c_uint),
        ("reserved", c_uint * 5),
    ]


class EncoderSession(Structure):
    """nvmlEncoderSessionInfo_t"""

    _fields_ = [
        ("sessionId", c_uint),
        ("pid", c_uint),
        ("vgpuInstance", c_uint),
        ("codecType", c_uint),
        ("hResolution", c_uint),
        ("vResolution", c_uint),
        ("averageFps", c_uint),
        ("averageLatency", c_uint),
    ]


class MigProfile(Structure):
    """Version 2, which has the profile's name."""

    _fields_ = [
        ("version", c_uint),
        ("id", c_uint),
        ("isP2pSupported", c_uint),
        ("sliceCount", c_uint),
        ("instanceCount", c_uint),
        ("multiprocessorCount", c_uint),
        ("copyEngineCount", c_uint),
        ("decoderCount", c_uint),
        ("encoderCount", c_uint),
        ("jpegCount", c_uint),
        ("ofaCount", c_uint),
        ("memorySizeMB", c_ulonglong),
        ("name", c_char * 96),
    ]
