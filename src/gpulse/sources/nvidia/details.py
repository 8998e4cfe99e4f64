"""What NVML can say beside the main metrics: one line a call, made only for a question that names one of its keys."""

from __future__ import annotations

from ctypes import byref, c_int, c_uint, create_string_buffer, sizeof

from .nvml import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NAMES,
    NOT_SUPPORTED,
    SUCCESS,
    gap_of,
)
from .readers import ALL_ONES, Reader, absent, file, long, number, throttle_words
from .structures import (
    ALL_ONES_64,
    C2cMode,
    DramEncryption,
    Fabric,
    FieldValue,
    Hostname,
    MarginTemperature,
    Memory,
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
    from collections.abc import Callable, Mapping
    from ctypes import Structure
    from typing import Any, TypeAlias

    from ...model.metric import Value
    from ..base import Facts
    from .nvml import Nvml
    from .readers import Bound

    Take: TypeAlias = "Callable[[Any], Value | None]"

CORRUPTED_INFOROM = 14
MODULE, MEMORY = 1, 2  # scopes of power
ADDRESSING_MODES = ("none", "hmm", "ats")
DRIVER_MODELS = ("wddm", "tcc", "mcdm")
OPERATION_MODES = ("all_on", "compute", "low_double_precision")
RECOVERY_ACTIONS = (
    "none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot",
)  # fmt: skip
PEERS = ("direct", "switch")
FABRIC_STATES = (None, "not_started", "in_progress", "completed")
FABRIC_HEALTH = (None, "healthy", "unhealthy", "limited_capacity")
MISCONFIGURATIONS = (
    None, "none", "incorrect_system_guid", "incorrect_chassis_serial_number", "no_partition", "insufficient_nvlinks",
    "incompatible_gpu_firmware", "invalid_location", "gpu_state_invalid",
)  # fmt: skip
ECC_KINDS = ("corrected", "uncorrected")
ECC_LIVES = ("volatile", "aggregate")
ECC_PLACES = {"l1": 0, "l2": 1, "dram": 2, "registers": 3, "texture": 4, "cbu": 6, "sram": 7}


def word_of(words: tuple[str | None, ...]) -> Callable[[int], str | None]:
    """Return what takes a number to its word; a number NVML added later is shown as it is."""
    return lambda value: words[value] if value < len(words) else str(value)


def numbers(function: str, keys: Mapping[str, Callable[[int], Value | None]]) -> Reader:
    """A call that fills several unsigned ints, one a key; an empty key is passed over."""
    names = tuple(key for key in keys if key)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent(names)
        outs = [c_uint() for _ in keys]
        arguments = (handle, *map(byref, outs))
        filled = [(key, take, out) for (key, take), out in zip(keys.items(), outs, strict=True) if key]

        def read(facts: Facts) -> int:
            code = call(*arguments)
            for key, take, out in filled:
                settle(facts, key, code, None if code or out.value == ALL_ONES else take(out.value))
            return code

        return read

    return Reader(names, bind)


def record(kind: type[Structure], function: str, keys: Mapping[str, str | Take], version: int = 0) -> Reader:
    """A call that fills a structure, which carries its size and `version` where it has one; a key takes a field or a function of it."""
    names = tuple(keys)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent(names)
        out = versioned(kind, version)
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = call(handle, reference)
            for key, take in keys.items():
                settle(facts, key, code, None if code else getattr(out, take) if isinstance(take, str) else take(out))
            return code

        return read

    return Reader(names, bind)


def field(key: str, identifier: int, take: Take, scope: int = 0) -> Reader:
    """A value NVML answers by a field number, 32 or 64 bits wide as it says itself."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function("nvmlDeviceGetFieldValues")
        if call is None:
            return absent((key,))
        out = FieldValue()
        out.fieldId, out.scopeId = identifier, scope
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = call(handle, 1, reference) or int(out.nvmlReturn)
            raw = out.value.ullVal if out.valueType in (2, 3) else out.value.uiVal
            settle(facts, key, code, None if code or raw in (ALL_ONES, ALL_ONES_64) else take(raw))
            return code

        return read

    return Reader((key,), bind)


def text(key: str, function: str, *before: int) -> Reader:
    """A call that fills a text of 64 bytes; an empty one is no answer."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        call = nvml.function(function)
        if call is None:
            return absent((key,))
        out = create_string_buffer(64)

        def read(facts: Facts) -> int:
            code = call(handle, *before, out, 64)
            settle(facts, key, code, None if code else decoded(out.value) or None)
            return code

        return read

    return Reader((key,), bind)


def settle(facts: Facts, key: str, code: int, value: Value | None) -> None:
    """File the value, or the gap that the return code or an empty answer means."""
    if code:
        facts.gaps[key] = gap_of(code)
    else:
        file(facts, key, value)


def versioned(kind: type[Structure], version: int) -> Any:
    """Return a structure that says its own size and version, as NVML asks of the newer ones."""
    out: Any = kind()
    if version:
        out.version = sizeof(kind) | version << 24
    return out


def decoded(raw: bytes) -> str:
    """Return a text of the driver's; bytes that are not UTF-8 are shown as such."""
    return raw.decode("utf-8", "backslashreplace")


def plain(value: int) -> int:
    return value


def thousandth(value: int) -> float:
    return value / 1000


def seconds(nanoseconds: int) -> float:
    """Return seconds to the microsecond, which is all that is measured."""
    return nanoseconds // 1000 / 1e6


def _bind_capability(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetCudaComputeCapability")
    if call is None:
        return absent(("compute_capability",))
    major, minor = c_int(), c_int()
    arguments = (handle, byref(major), byref(minor))

    def read(facts: Facts) -> int:
        code = call(*arguments)
        settle(facts, "compute_capability", code, f"{major.value}.{minor.value}")
        return code

    return read


def _bind_validation(nvml: Nvml, handle: Any) -> Bound:
    def read(facts: Facts) -> int:
        code = nvml.call("nvmlDeviceValidateInforom", handle)
        answered = code in (SUCCESS, CORRUPTED_INFOROM)
        settle(facts, "inforom_valid", SUCCESS if answered else code, code == SUCCESS)
        return SUCCESS if answered else code

    return read


def _bind_encryption(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetDramEncryptionMode")
    if call is None:
        return absent(("dram_encryption", "dram_encryption_pending"))
    now, pending = versioned(DramEncryption, 1), versioned(DramEncryption, 1)
    arguments = (handle, byref(now), byref(pending))

    def read(facts: Facts) -> int:
        code = call(*arguments)
        settle(facts, "dram_encryption", code, bool(now.encryptionState))
        settle(facts, "dram_encryption_pending", code, bool(pending.encryptionState))
        return code

    return read


def _bind_fabric(nvml: Nvml, handle: Any) -> Bound:
    call = nvml.function("nvmlDeviceGetGpuFabricInfoV")
    if call is None:
        return absent(tuple(_FABRIC))
    new, old = versioned(Fabric, 3), Fabric()
    old.version = Fabric.healthSummary.offset | 2 << 24  # the summary came with version 3

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
    """What says nothing until registration has come to its end."""
    return lambda out: take(out) if out.state & 0xFF == 3 else None


def _health(shift: int) -> Take:
    """A pair of bits: 1 is true, 2 is false, 0 says nothing."""
    return lambda out: {1: True, 2: False}.get(out.healthMask >> shift & 3)


def _cluster(out: Any) -> str:
    digits = bytes(out.clusterUuid).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_FABRIC: dict[str, Take] = {
    "fabric_state": lambda out: word_of(FABRIC_STATES)(out.state & 0xFF),
    "fabric_status": _when_complete(lambda out: NAMES.get(out.status, "SUCCESS" if not out.status else "UNKNOWN").lower()),
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
    Reader(("compute_capability",), _bind_capability),
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
    Reader(tuple(_FABRIC), _bind_fabric),
    number("display_attached", "nvmlDeviceGetDisplayMode", to=bool),
    record(
        _AddressingMode,
        "nvmlDeviceGetAddressingMode",
        {"addressing_mode": lambda out: word_of(ADDRESSING_MODES)(out.value)},
        1,
    ),
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
    Reader(("dram_encryption", "dram_encryption_pending"), _bind_encryption),
    long(
        "throttle_reasons_supported",
        "nvmlDeviceGetSupportedClocksEventReasons",
        "nvmlDeviceGetSupportedClocksThrottleReasons",
        to=throttle_words,
    ),
    field("throttle_time_power_cap", 74, seconds),
    field("throttle_time_sync_boost", 76, seconds),
    field("throttle_time_thermal", 269, seconds),
    field("throttle_time_thermal_hardware", 270, seconds),
    field("throttle_time_power_brake", 271, seconds),
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
        Memory,
        "nvmlDeviceGetConfComputeProtectedMemoryUsage",
        {"memory_protected_total": "total", "memory_protected_used": "used", "memory_protected_free": "free"},
    ),
    numbers(
        "nvmlDeviceGetEncoderStats",
        {"encoder_sessions": plain, "encoder_frame_rate": plain, "encoder_latency": lambda value: value / 1e6},
    ),
    numbers("nvmlDeviceGetEccMode", {"ecc_mode": bool, "ecc_mode_pending": bool}),
    *(
        long(f"ecc_{word}_{life}_{place}", "nvmlDeviceGetMemoryErrorCounter", before=(kind, lasting, number_of_place))
        for kind, word in enumerate(ECC_KINDS)
        for lasting, life in enumerate(ECC_LIVES)
        for place, number_of_place in ECC_PLACES.items()
    ),
    long("ecc_corrected_aggregate", "nvmlDeviceGetTotalEccErrors", before=(0, 1)),
    long("ecc_uncorrected_aggregate", "nvmlDeviceGetTotalEccErrors", before=(1, 1)),
    record(SramErrors, "nvmlDeviceGetSramEccErrorStatus", _SRAM, 1),
    field("retired_pages_corrected", 29, plain),
    field("retired_pages_uncorrected", 30, plain),
    number("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus", to=bool),
    numbers(
        "nvmlDeviceGetRemappedRows",
        {
            "remapped_rows_corrected": plain,
            "remapped_rows_uncorrected": plain,
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
)
