"""Readers for the detail metrics, the NVLink fabric included: one line per call, made only if one of its keys is requested."""

from __future__ import annotations

from ctypes import byref, c_int, c_uint

from . import structures
from .board import BOARD, PROFILES
from .nvlink import FABRIC_READERS
from .nvml import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NAMES,
    NOT_SUPPORTED,
    SUCCESS,
    Reader,
    computed,
    decoded,
    fetched,
    field,
    number,
    numbers,
    record,
    text,
    versioned,
    word_of,
)  # fmt: skip
from .readers import throttle_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .nvml import Nvml, Take

FABRIC_STATES = (None, "not_started", "in_progress", "completed")
FABRIC_HEALTH = (None, "healthy", "unhealthy", "limited_capacity")
MISCONFIGURATIONS = (
    None, "none", "incorrect_system_guid", "incorrect_chassis_serial_number", "no_partition", "insufficient_nvlinks",
    "incompatible_gpu_firmware", "invalid_location", "gpu_state_invalid",
)  # fmt: skip
CORRUPTED_INFOROM = 14
MODULE, MEMORY = 1, 2  # scopes of power
ADDRESSING_MODES = ("none", "hmm", "ats")
DRIVER_MODELS = ("wddm", "tcc", "mcdm")
OPERATION_MODES = ("all_on", "compute", "low_double_precision")
RECOVERY_ACTIONS = (
    "none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot",
)  # fmt: skip
PEERS = ("direct", "switch")
ECC_KINDS = ("corrected", "uncorrected")
ECC_LIVES = ("volatile", "aggregate")
ECC_PLACES = {"l1": 0, "l2": 1, "dram": 2, "registers": 3, "texture": 4, "cbu": 6, "sram": 7}
_MOST_CLOCKS = 512


def _fabric(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    name, out = "nvmlDeviceGetGpuFabricInfoV", versioned(structures.Fabric, 3)
    code = nvml.call(name, handle, byref(out))
    if code in (INVALID_ARGUMENT, ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND):
        out = structures.Fabric(version=structures.Fabric.healthSummary.offset | 2 << 24)  # version 3 added the summary
        code = nvml.call(name, handle, byref(out))
    if code == SUCCESS and not out.state & 0xFF:
        code = NOT_SUPPORTED
    return code, tuple(take(out) for take in _FABRIC.values()) if code == SUCCESS else ()


def _when_complete(take: Take) -> Take:
    """A value that is valid only after the registration has completed."""
    return lambda out: take(out) if out.state & 0xFF == 3 else None


def _health(shift: int) -> Take:
    """A pair of bits: 1 is true, 2 is false, 0 is unknown."""
    return lambda out: {1: True, 2: False}.get(out.healthMask >> shift & 3)


def _cluster(out: Any) -> str:
    digits = bytes(out.clusterUuid).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_FABRIC: dict[str, Take] = {
    "fabric_state": lambda out: word_of(FABRIC_STATES)(out.state & 0xFF),
    "fabric_status": _when_complete(
        lambda out: NAMES.get(out.status, "SUCCESS" if not out.status else "UNKNOWN").lower()
    ),
    "fabric_clique": _when_complete(lambda out: int(out.cliqueId)),
    "fabric_cluster": _when_complete(_cluster),
    "fabric_health": lambda out: word_of(FABRIC_HEALTH)(out.healthSummary),
    "fabric_degraded": _health(0),
    "fabric_route_recovery": _health(2),
    "fabric_route_unhealthy": _health(4),
    "fabric_access_timeout": _health(6),
    "fabric_misconfiguration": lambda out: word_of(MISCONFIGURATIONS)(out.healthMask >> 8 & 15),
    "fabric_partition": _health(12),
}
FABRIC = computed(tuple(_FABRIC), _fabric)


def thousandth(value: int) -> float:
    return value / 1000


def seconds(nanoseconds: int) -> float:
    """Return seconds rounded to microseconds, the resolution of the measurement."""
    return nanoseconds // 1000 / 1e6


def _capability(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    major, minor = c_int(), c_int()
    code = nvml.call("nvmlDeviceGetCudaComputeCapability", handle, byref(major), byref(minor))
    return code, (f"{major.value}.{minor.value}",)


def _system_gpus(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    code, count = nvml.number("nvmlDeviceGetCount_v2")
    return code, (count,)


def _validation(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    code = nvml.call("nvmlDeviceValidateInforom", handle)
    return SUCCESS if code in (SUCCESS, CORRUPTED_INFOROM) else code, (code == SUCCESS,)


def _encryption(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    outs = versioned(structures.DramEncryption, 1), versioned(structures.DramEncryption, 1)
    code = nvml.call("nvmlDeviceGetDramEncryptionMode", handle, *map(byref, outs))
    return code, tuple(bool(out.encryptionState) for out in outs)


def _supported_clocks(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    code, clocks = fetched(nvml, "nvmlDeviceGetSupportedMemoryClocks", c_uint, _MOST_CLOCKS, handle)
    words = []
    for clock in clocks:
        failed, rest = fetched(nvml, "nvmlDeviceGetSupportedGraphicsClocks", c_uint, _MOST_CLOCKS, handle, clock)
        code = code or failed
        words.append(f"{clock}:{','.join(map(str, rest))}")
    return code, (tuple(words),)


_PCI = {
    "pci_domain": "domain", "pci_bus": "bus", "pci_device": "device",
    "pci_device_id": "pciDeviceId", "pci_subsystem_id": "pciSubSystemId",
}  # fmt: skip
_SRAM: dict[str, str | Take] = {
    "ecc_sram_parity_volatile": "volatileUncParity",
    "ecc_sram_secded_volatile": "volatileUncSecDed",
    "ecc_sram_parity_aggregate": "aggregateUncParity",
    "ecc_sram_secded_aggregate": "aggregateUncSecDed",
    "ecc_sram_l2": "aggregateUncBucketL2",
    "ecc_sram_sm": "aggregateUncBucketSm",
    "ecc_sram_mcu": "aggregateUncBucketMcu",
    "ecc_sram_pcie": "aggregateUncBucketPcie",
    "ecc_sram_other": "aggregateUncBucketOther",
    "ecc_sram_exceeded": lambda out: bool(out.bThresholdExceeded),
}
_PLATFORM: dict[str, str | Take] = {
    "platform_chassis": lambda out: decoded(out.chassisSerialNumber),
    "platform_slot": "slotNumber",
    "platform_tray": "trayIndex",
    "platform_host": "hostId",
    "platform_peer": lambda out: word_of(PEERS)(out.peerType),
    "platform_module": "moduleId",
    "platform_guid": lambda out: f"0x{int.from_bytes(bytes(out.ibGuid[:8]), 'little'):016x}",
}

DETAILS: tuple[Reader, ...] = (
    computed(("compute_capability",), _capability),
    record(structures.PciInfo, "nvmlDeviceGetPciInfo_v3", _PCI),
    record(
        structures.PciInfoExtended,
        "nvmlDeviceGetPciInfoExt",
        {"pci_base_class": "baseClass", "pci_sub_class": "subClass"},
        1,
    ),
    number("pcie_gen_gpu_max", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    text("inforom_image", "nvmlDeviceGetInforomImageVersion"),
    text("inforom_oem", "nvmlDeviceGetInforomVersion", 0),
    text("inforom_ecc", "nvmlDeviceGetInforomVersion", 1),
    text("inforom_power", "nvmlDeviceGetInforomVersion", 2),
    computed(("inforom_valid",), _validation),
    record(structures.Hostname, "nvmlDeviceGetHostname_v1", {"hostname": lambda out: decoded(out.value) or None}),
    record(structures.Platform, "nvmlDeviceGetPlatformInfo", _PLATFORM, 2),
    FABRIC,
    number("display_attached", "nvmlDeviceGetDisplayMode", to=bool),
    record(
        structures.AddressingMode,
        "nvmlDeviceGetAddressingMode",
        {"addressing_mode": lambda out: word_of(ADDRESSING_MODES)(out.value)},
        1,
    ),
    computed(("system_gpus",), _system_gpus),
    number("accounting_mode", "nvmlDeviceGetAccountingMode", to=bool),
    number("accounting_capacity", "nvmlDeviceGetAccountingBufferSize"),
    numbers(
        "nvmlDeviceGetDriverModel_v2",
        {"driver_model": word_of(DRIVER_MODELS), "driver_model_pending": word_of(DRIVER_MODELS)},
    ),
    numbers(
        "nvmlDeviceGetGpuOperationMode",
        {"operation_mode": word_of(OPERATION_MODES), "operation_mode_pending": word_of(OPERATION_MODES)},
    ),
    field("recovery_action", 230, word_of(RECOVERY_ACTIONS)),
    numbers("nvmlDeviceGetMigMode", {"": bool, "mig_mode_pending": bool}),
    numbers("nvmlDeviceGetGspFirmwareMode", {"gsp_mode": bool, "gsp_mode_default": bool}),
    record(structures.C2cMode, "nvmlDeviceGetC2cModeInfoV", {"c2c_mode": lambda out: bool(out.isC2cEnabled)}),
    computed(("dram_encryption", "dram_encryption_pending"), _encryption),
    computed(("clocks_supported",), _supported_clocks),
    number(
        "throttle_reasons_supported",
        "nvmlDeviceGetSupportedClocksEventReasons",
        "nvmlDeviceGetSupportedClocksThrottleReasons",
        to=throttle_words,
        bits=64,
    ),
    field("throttle_time_power_cap", 74, seconds),
    field("throttle_time_sync_boost", 76, seconds),
    field("throttle_time_thermal", 269, seconds),
    field("throttle_time_thermal_hardware", 270, seconds),
    field("throttle_time_power_brake", 271, seconds),
    field("throttle_time_board_limit", 77, seconds),
    field("throttle_time_reliability", 79, seconds),
    number("clock_graphics_max", "nvmlDeviceGetMaxClockInfo", before=(0,)),
    number("clock_video_max", "nvmlDeviceGetMaxClockInfo", before=(3,)),
    number("clock_graphics_application", "nvmlDeviceGetApplicationsClock", before=(0,)),
    number("clock_memory_application", "nvmlDeviceGetApplicationsClock", before=(2,)),
    number("clock_graphics_default", "nvmlDeviceGetDefaultApplicationsClock", before=(0,)),
    number("clock_memory_default", "nvmlDeviceGetDefaultApplicationsClock", before=(2,)),
    record(
        structures.MarginTemperature, "nvmlDeviceGetMarginTemperature", {"temperature_margin": "marginTemperature"}, 1
    ),
    number("power_management", "nvmlDeviceGetPowerManagementMode", to=bool),
    field("power_draw_average", 185, thousandth),
    field("power_draw_instant", 186, thousandth),
    number("power_limit_requested", "nvmlDeviceGetPowerManagementLimit", over=1000),
    numbers(
        "nvmlDeviceGetPowerManagementLimitConstraints", {"power_limit_min": thousandth, "power_limit_max": thousandth}
    ),
    field("memory_power_draw", 185, thousandth, MEMORY),
    field("module_power_draw_average", 185, thousandth, MODULE),
    field("module_power_draw_instant", 186, thousandth, MODULE),
    field("module_power_limit", 190, thousandth, MODULE),
    field("module_power_limit_requested", 192, thousandth, MODULE),
    field("module_power_limit_default", 189, thousandth, MODULE),
    field("module_power_limit_min", 187, thousandth, MODULE),
    field("module_power_limit_max", 188, thousandth, MODULE),
    record(
        structures.MemoryInfo,
        "nvmlDeviceGetConfComputeProtectedMemoryUsage",
        {"memory_protected_total": "total", "memory_protected_used": "used", "memory_protected_free": "free"},
    ),
    numbers(
        "nvmlDeviceGetEncoderStats",
        {"encoder_sessions": int, "encoder_frame_rate": int, "encoder_latency": lambda value: value / 1e6},
    ),
    numbers("nvmlDeviceGetEccMode", {"ecc_mode": bool, "ecc_mode_pending": bool}),
    *(
        number(
            f"ecc_{word}_{life}_{place}",
            "nvmlDeviceGetMemoryErrorCounter",
            before=(kind, lasting, number_of_place),
            bits=64,
        )
        for kind, word in enumerate(ECC_KINDS)
        for lasting, life in enumerate(ECC_LIVES)
        for place, number_of_place in ECC_PLACES.items()
    ),
    number("ecc_corrected_aggregate", "nvmlDeviceGetTotalEccErrors", before=(0, 1), bits=64),
    number("ecc_uncorrected_aggregate", "nvmlDeviceGetTotalEccErrors", before=(1, 1), bits=64),
    record(structures.SramErrors, "nvmlDeviceGetSramEccErrorStatus", _SRAM, 1),
    field("retired_pages_corrected", 29),
    field("retired_pages_uncorrected", 30),
    number("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus", to=bool),
    numbers(
        "nvmlDeviceGetRemappedRows",
        {
            "remapped_rows_corrected": int,
            "remapped_rows_uncorrected": int,
            "remapped_rows_pending": bool,
            "remapped_rows_failed": bool,
        },
    ),
    record(
        structures.RemappedRows,
        "nvmlDeviceGetRemappedRows_v2",
        {
            "remapped_rows_corrected_inactive": "corrInactiveRemaps",
            "remapped_rows_uncorrected_inactive": "uncInactiveRemaps",
        },
    ),
    record(
        structures.RemapHistogram,
        "nvmlDeviceGetRowRemapperHistogram",
        {f"remap_banks_{step}": step for step in ("max", "high", "partial", "low", "none")},
    ),
    *BOARD,
    *FABRIC_READERS,
    PROFILES,
)
