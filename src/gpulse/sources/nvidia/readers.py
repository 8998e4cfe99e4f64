"""What NVML reports about a GPU: its identity, and one line per call from the function's name to the catalog's keys."""

from __future__ import annotations

from ctypes import byref, c_uint

from ...model.catalog import THROTTLE_BITS
from .nvml import (
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    SUCCESS,
    Reader,
    field,
    gap_of,
    number,
    prepared,
    record,
    settle,
    versioned,
)
from .structures import Bar1Memory, MemoryInfo, MemoryV2, PciInfo, TemperatureV1, Utilization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...model.metric import Gap, Value
    from ..base import Facts
    from .nvml import Bound, Nvml, Values

COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")


def throttle_words(bits: int) -> tuple[str, ...]:
    """Return the reasons in a bit mask as words; a bit that NVML added later is shown by its number."""
    known = [word for word, bit in THROTTLE_BITS.items() if bits & bit]
    rest = bits & ~sum(THROTTLE_BITS.values())
    return (*known, f"0x{rest:x}") if rest else tuple(known)


def _bind_memory(nvml: Nvml, handle: Any) -> Bound:
    second, first = nvml.function("nvmlDeviceGetMemoryInfo_v2"), nvml.function("nvmlDeviceGetMemoryInfo")
    if second is None:
        return record(MemoryInfo, "nvmlDeviceGetMemoryInfo", _MEMORY).bind(nvml, handle)
    out, old = versioned(MemoryV2, 2), MemoryInfo()
    reference, old_reference = byref(out), byref(old)

    def read(facts: Facts) -> int:
        code = second(handle, reference)
        values = facts.values
        if code == SUCCESS:
            values["memory_total"], values["memory_used"] = out.total, out.used
            values["memory_free"], values["memory_reserved"] = out.free, out.reserved
            return code
        # only if v2 does not exist: v1 counts memory reserved by the driver as used
        if first is not None and gap_of(code) == "unsupported" and (code := first(handle, old_reference)) == SUCCESS:
            values["memory_total"], values["memory_used"], values["memory_free"] = old.total, old.used, old.free
            facts.gaps["memory_reserved"] = "unsupported"
            return code
        for key in MEMORY.keys:
            facts.gaps[key] = gap_of(code)
        return code

    return read


def _bind_temperature(nvml: Nvml, handle: Any) -> Bound:
    old, new = nvml.function("nvmlDeviceGetTemperature"), nvml.function("nvmlDeviceGetTemperatureV")
    plain, out = c_uint(), versioned(TemperatureV1, 1)
    plain_reference, reference = byref(plain), byref(out)

    def read(facts: Facts) -> int:
        code = FUNCTION_NOT_FOUND if old is None else old(handle, 0, plain_reference)
        degrees = plain.value if plain.value < 1 << 31 else plain.value - (1 << 32)
        if code in (FUNCTION_NOT_FOUND, DEPRECATED) and new is not None:
            code, degrees = new(handle, reference), out.temperature
        settle(facts, "temperature", code, None if degrees == -1 else degrees)  # all ones: a sensor that is not there
        return code

    return read


def _bind_fan(nvml: Nvml, handle: Any) -> Bound:
    _, fans = nvml.number("nvmlDeviceGetNumFans", handle)
    each = nvml.function("nvmlDeviceGetFanSpeed_v2")
    if fans < 2 or each is None:
        return number("fan_speed", "nvmlDeviceGetFanSpeed").bind(nvml, handle)
    out = c_uint()
    reference = byref(out)

    def read(facts: Facts) -> int:
        speeds = [(each(handle, fan, reference), out.value) for fan in range(min(fans, 16))]
        turning = [speed for code, speed in speeds if code == SUCCESS]
        if not turning:
            facts.gaps["fan_speed"] = gap_of(speeds[0][0])
            return speeds[0][0]
        facts.values["fan_speed"] = max(turning)
        return SUCCESS

    return read


def _remapped_rows(handle: Any) -> tuple[tuple[Any, ...], Values]:
    corrected, uncorrected, pending, failed = c_uint(), c_uint(), c_uint(), c_uint()
    arguments = (handle, byref(corrected), byref(uncorrected), byref(pending), byref(failed))
    return arguments, lambda: [("remapped_rows", corrected.value + uncorrected.value)]


def _mode(value: int) -> str | None:
    return COMPUTE_MODES[value] if value < len(COMPUTE_MODES) else None


_MEMORY = {"memory_total": "total", "memory_used": "used", "memory_free": "free"}
MEMORY = Reader(("memory_used", "memory_total", "memory_free", "memory_reserved"), _bind_memory)

BAR1 = record(Bar1Memory, "nvmlDeviceGetBAR1MemoryInfo", {"bar1_used": "bar1Used", "bar1_total": "bar1Total"})

READERS: tuple[Reader, ...] = (
    record(Utilization, "nvmlDeviceGetUtilizationRates", {"utilization": "gpu", "memory_utilization": "memory"}),
    MEMORY,
    Reader(("temperature",), _bind_temperature),
    number("power_draw", "nvmlDeviceGetPowerUsage", over=1000),
    number("power_limit", "nvmlDeviceGetEnforcedPowerLimit", over=1000),
    number("power_default_limit", "nvmlDeviceGetPowerManagementDefaultLimit", over=1000),
    number("energy", "nvmlDeviceGetTotalEnergyConsumption", over=1000, bits=64),
    number("clock_graphics", "nvmlDeviceGetClockInfo", before=(0,)),
    number("clock_sm", "nvmlDeviceGetClockInfo", before=(1,)),
    number("clock_memory", "nvmlDeviceGetClockInfo", before=(2,)),
    number("clock_video", "nvmlDeviceGetClockInfo", before=(3,)),
    number("clock_sm_max", "nvmlDeviceGetMaxClockInfo", before=(1,)),
    number("clock_memory_max", "nvmlDeviceGetMaxClockInfo", before=(2,)),
    number("pstate", "nvmlDeviceGetPerformanceState", to=lambda state: state if state < 16 else None),
    number(
        "throttle_reasons",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        to=throttle_words,
        bits=64,
    ),
    Reader(("fan_speed",), _bind_fan),
    field("memory_temperature", 82),
    number("temperature_limit", "nvmlDeviceGetTemperatureThreshold", before=(1,)),
    number("encoder_utilization", "nvmlDeviceGetEncoderUtilization", after=1),
    number("decoder_utilization", "nvmlDeviceGetDecoderUtilization", after=1),
    number("jpeg_utilization", "nvmlDeviceGetJpgUtilization", after=1),
    number("ofa_utilization", "nvmlDeviceGetOfaUtilization", after=1),
    number("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"),
    number("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    number("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    number("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    number("pcie_replays", "nvmlDeviceGetPcieReplayCounter"),
    number("ecc_corrected", "nvmlDeviceGetTotalEccErrors", before=(0, 0), bits=64),
    number("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", before=(1, 0), bits=64),
    prepared(("remapped_rows",), "nvmlDeviceGetRemappedRows", _remapped_rows),
    BAR1,
    number("compute_mode", "nvmlDeviceGetComputeMode", to=_mode),
    number("persistence_mode", "nvmlDeviceGetPersistenceMode", to=bool),
    number("mig_mode", "nvmlDeviceGetMigMode", after=1, to=bool),
    number("display_active", "nvmlDeviceGetDisplayActive", to=bool),
)


_TEXTS = {
    "name": "nvmlDeviceGetName",
    "uuid": "nvmlDeviceGetUUID",
    "serial": "nvmlDeviceGetSerial",
    "vbios": "nvmlDeviceGetVbiosVersion",
}
IDENTITY_KEYS = frozenset({*_TEXTS, "index", "vendor", "pci_bus_id", "architecture", "driver_version"})
_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell",
}  # fmt: skip


def identify(nvml: Nvml, handle: Any, index: int) -> tuple[dict[str, Value], dict[str, Gap]]:
    """Return the identity of a GPU and its gaps; an empty text from the driver counts as a gap."""
    values: dict[str, Value] = {"index": index, "vendor": "nvidia"}
    gaps: dict[str, Gap] = {}
    for key, function in _TEXTS.items():
        code, text = nvml.text(function, handle)
        _file(values, gaps, key, code, text)
    pci = PciInfo()
    name = "nvmlDeviceGetPciInfo_v3" if nvml.function("nvmlDeviceGetPciInfo_v3") else "nvmlDeviceGetPciInfo"
    code = nvml.call(name, handle, byref(pci))
    _file(values, gaps, "pci_bus_id", code, (pci.busId or pci.busIdLegacy).decode("ascii", "backslashreplace"))
    code, number = nvml.number("nvmlDeviceGetArchitecture", handle)
    _file(values, gaps, "architecture", code, _ARCHITECTURES.get(number, ""))
    return values, gaps


def _driver_version(nvml: Nvml) -> str:
    return nvml.text("nvmlSystemGetDriverVersion", size=80)[1]


def _cuda_version(nvml: Nvml) -> str:
    name = "nvmlSystemGetCudaDriverVersion_v2"
    code, cuda = nvml.number(name if nvml.function(name) else "nvmlSystemGetCudaDriverVersion")
    return f"{cuda // 1000}.{cuda % 1000 // 10}" if code == SUCCESS and cuda else ""


def _nvml_version(nvml: Nvml) -> str:
    return nvml.text("nvmlSystemGetNVMLVersion", size=80)[1]


# What reads the version of the driver, of the CUDA it supports, and of NVML; empty if the driver does not tell.
VERSIONS: dict[str, Callable[[Nvml], str]] = {"version": _driver_version, "cuda": _cuda_version, "nvml": _nvml_version}


def _file(values: dict[str, Value], gaps: dict[str, Gap], key: str, code: int, text: str) -> None:
    if code == SUCCESS and text:
        values[key] = text
    else:
        gaps[key] = gap_of(code) if code else "unsupported"
