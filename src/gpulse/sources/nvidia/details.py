"""Readers for the detail metrics, the NVLink fabric included: one line per call, made only if one of its keys is requested."""

from __future__ import annotations

from ctypes import byref, c_int, c_uint

from .board import BOARD
from .mig import PROFILES
from .nvlink import FABRIC_READERS
from .nvml import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NAMES,
    NOT_SUPPORTED,
    SUCCESS,
    Reader,
    absent,
    decoded,
    field,
    number,
    numbers,
    prepared,
    record,
    settle,
    text,
    versioned,
    word_of,
)
from .readers import throttle_words
from .structures import (
    C2cMode,
    DramEncryption,
    Fabric,
    Hostname,
    MarginTemperature,
    MemoryInfo,
    PciInfo,
    PciInfoExtended,
    Platform,
    RemapHistogram,
    RemappedRows,
    SramErrors,
)
from .unified import _AddressingMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..base import Facts
    from .nvml import Bound, Nvml, Take, Values


FABRIC_STATES = (None, "not_started", "in_progress", "completed")
FABRIC_HEALTH = (None, "healthy", "unhealthy", "limited_capacity")
MISCONFIGURATIONS = (
    None, "none", "incorrect_system_guid", "incorrect_chassis_serial_number", "no_partition", "insufficient_nvlinks",
    "incompatible_gpu_firmware", "invalid_location", "gpu_state_invalid",
)  # fmt: skip


def _bind_fabric(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetGpuFabricInfoV")
    if call is None:
        return absent(tuple(_FABRIC))
    new, old = versioned(Fabric, 3), Fabric()
    old.version = Fabric.healthSummary.offset | 2 << 24  # version 3 added the summary

    def read(facts: Facts) -> int:
        out, code = new, call(handle, byref(new))
        if code in (INVALID_ARGUMENT, ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND):
            out, code = old, call(handle, byref(old))
        if code == SUCCESS and not out.state & 0xFF:
            code = NOT_SUPPORTED
        for key, take in _FABRIC.items():
            settle(facts, key, code, None if code else take(out))
        return code

    return read


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

FABRIC = Reader(tuple(_FABRIC), _bind_fabric)


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


def _count(handle: Any) -> tuple[tuple[Any, ...], Values]:
    out = c_uint()
    return (byref(out),), lambda: [("system_gpus", out.value)]


def thousandth(value: int) -> float:
    return value / 1000


def seconds(nanoseconds: int) -> float:
    """Return seconds rounded to microseconds, the resolution of the measurement."""
    return nanoseconds // 1000 / 1e6


def _capability(handle: Any) -> tuple[tuple[Any, ...], Values]:
    major, minor = c_int(), c_int()
    return (handle, byref(major), byref(minor)), lambda: [("compute_capability", f"{major.value}.{minor.value}")]


def _bind_validation(nvml: Nvml, handle: Any) -> Bound:
    def read(facts: Facts) -> int:
        code = nvml.call("nvmlDeviceValidateInforom", handle)
        answered = code in (SUCCESS, CORRUPTED_INFOROM)
        settle(facts, "inforom_valid", SUCCESS if answered else code, code == SUCCESS)
        return SUCCESS if answered else code

    return read


def _encryption(handle: Any) -> tuple[tuple[Any, ...], Values]:
    outs = {"dram_encryption": versioned(DramEncryption, 1), "dram_encryption_pending": versioned(DramEncryption, 1)}
    return (handle, *map(byref, outs.values())), lambda: [(key, bool(out.encryptionState)) for key, out in outs.items()]


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

_MOST_CLOCKS = 512


def _bind_supported_clocks(nvml: Nvml, handle: Any) -> Bound:
    memory = nvml.function("nvmlDeviceGetSupportedMemoryClocks")
    graphics = nvml.function("nvmlDeviceGetSupportedGraphicsClocks")
    if memory is None or graphics is None:
        return absent(("clocks_supported",))
    found, count = (c_uint * _MOST_CLOCKS)(), c_uint()

    def fetch(call: Callable[..., int], *arguments: object) -> tuple[int, list[int]]:
        count.value = _MOST_CLOCKS
        code = call(handle, *arguments, byref(count), found)
        return code, list(found[: min(count.value, _MOST_CLOCKS)]) if code == SUCCESS else []

    def read(facts: Facts) -> int:
        code, clocks = fetch(memory)
        words = []
        for clock in clocks:
            failed, rest = fetch(graphics, clock)
            code = code or failed
            words.append(f"{clock}:{','.join(map(str, rest))}")
        settle(facts, "clocks_supported", code, tuple(words))
        return code

    return read


DETAILS: tuple[Reader, ...] = (
    prepared(("compute_capability",), "nvmlDeviceGetCudaComputeCapability", _capability),
    record(PciInfo, "nvmlDeviceGetPciInfo_v3", _PCI),
    record(PciInfoExtended, "nvmlDeviceGetPciInfoExt", {"pci_base_class": "baseClass", "pci_sub_class": "subClass"}, 1),
    number("pcie_gen_gpu_max", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    text("inforom_image", "nvmlDeviceGetInforomImageVersion"),
    text("inforom_oem", "nvmlDeviceGetInforomVersion", 0),
    text("inforom_ecc", "nvmlDeviceGetInforomVersion", 1),
    text("inforom_power", "nvmlDeviceGetInforomVersion", 2),
    Reader(("inforom_valid",), _bind_validation),
    record(Hostname, "nvmlDeviceGetHostname_v1", {"hostname": lambda out: decoded(out.value) or None}),
    record(Platform, "nvmlDeviceGetPlatformInfo", _PLATFORM, 2),
    FABRIC,
    number("display_attached", "nvmlDeviceGetDisplayMode", to=bool),
    record(
        _AddressingMode,
        "nvmlDeviceGetAddressingMode",
        {"addressing_mode": lambda out: word_of(ADDRESSING_MODES)(out.value)},
        1,
    ),
    prepared(("system_gpus",), "nvmlDeviceGetCount_v2", _count),
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
    record(C2cMode, "nvmlDeviceGetC2cModeInfoV", {"c2c_mode": lambda out: bool(out.isC2cEnabled)}),
    prepared(("dram_encryption", "dram_encryption_pending"), "nvmlDeviceGetDramEncryptionMode", _encryption),
    Reader(("clocks_supported",), _bind_supported_clocks),
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
    record(MarginTemperature, "nvmlDeviceGetMarginTemperature", {"temperature_margin": "marginTemperature"}, 1),
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
        MemoryInfo,
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
    record(SramErrors, "nvmlDeviceGetSramEccErrorStatus", _SRAM, 1),
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
        RemappedRows,
        "nvmlDeviceGetRemappedRows_v2",
        {
            "remapped_rows_corrected_inactive": "corrInactiveRemaps",
            "remapped_rows_uncorrected_inactive": "uncInactiveRemaps",
        },
    ),
    record(
        RemapHistogram,
        "nvmlDeviceGetRowRemapperHistogram",
        {f"remap_banks_{step}": step for step in ("max", "high", "partial", "low", "none")},
    ),
    *BOARD,
    *FABRIC_READERS,
    PROFILES,
)
