"""Readers of a GPU's metrics: one line per NVML call, from the function's name to the catalog keys.

A reader is bound once to a library and a handle. A bound reader is a function that makes one call with its own buffers,
stores the values or gaps, and returns the code. That costs half as much as a general binding.
"""

from __future__ import annotations

from ctypes import byref, c_uint, c_ulonglong, sizeof

from .nvml import DEPRECATED, FUNCTION_NOT_FOUND, SUCCESS, gap_of
from .structures import ALL_ONES_64, Bar1Memory, FieldValue, MemoryInfo, MemoryV2, TemperatureV1, Utilization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ctypes import Structure
    from typing import Any, TypeAlias

    from ...model.metric import Value
    from ..base import Facts
    from .nvml import Nvml

    Bound: TypeAlias = Callable[[Facts], int]
    Bind: TypeAlias = Callable[[Nvml, Any], Bound]

ALL_ONES = 0xFFFFFFFF
COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")
THROTTLE_WORDS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}


class Reader:
    """One call and the catalog keys it provides."""

    __slots__ = ("bind", "keys")

    def __init__(self, keys: tuple[str, ...], bind: Bind) -> None:
        self.keys = keys
        self.bind = bind


def absent(keys: tuple[str, ...]) -> Bound:
    """Return a bound reader for a call this driver does not have."""

    def read(facts: Facts) -> int:
        for key in keys:
            facts.gaps[key] = "unsupported"
        return FUNCTION_NOT_FOUND

    return read


def number(
    key: str,
    *functions: str,
    before: tuple[int, ...] = (),
    after: int = 0,
    over: int = 1,
    to: Callable[[int], Value | None] | None = None,
    bits: int = 32,
) -> Reader:
    """A call that fills one unsigned number, then `after` more that are ignored; `before` are arguments between handle and result."""
    kind, missing = (c_uint, ALL_ONES) if bits == 32 else (c_ulonglong, ALL_ONES_64)

    def bind(nvml: Nvml, handle: Any) -> Bound:
        function = nvml.function(*functions)
        if function is None:
            return absent((key,))
        out = kind()
        arguments = (handle, *before, byref(out), *(byref(c_uint()) for _ in range(after)))

        def read(facts: Facts) -> int:
            code = function(*arguments)
            raw = out.value
            if code:
                facts.gaps[key] = gap_of(code)
            elif raw == missing:
                facts.gaps[key] = "unsupported"
            elif to is not None:
                file(facts, key, to(raw))
            else:
                facts.values[key] = raw if over == 1 else raw / over
            return code

        return read

    return Reader((key,), bind)


def structure(kind: type[Structure], names: Mapping[str, str], *functions: str) -> Reader:
    """A call that fills a structure; `names` maps its fields to keys."""
    keys = tuple(names.values())

    def bind(nvml: Nvml, handle: Any) -> Bound:
        function = nvml.function(*functions)
        if function is None:
            return absent(keys)
        out = kind()
        reference = byref(out)
        pairs = tuple(names.items())

        def read(facts: Facts) -> int:
            code = function(handle, reference)
            for field, key in pairs:
                if code:
                    facts.gaps[key] = gap_of(code)
                else:
                    file(facts, key, getattr(out, field))
            return code

        return read

    return Reader(keys, bind)


def file(facts: Facts, key: str, value: Value | None) -> None:
    """Store a value, or a gap if the driver's answer means that there is none."""
    if value is None or value in (ALL_ONES, ALL_ONES_64):
        facts.gaps[key] = "unsupported"
    else:
        facts.values[key] = value


def throttle_words(bits: int) -> tuple[str, ...]:
    """Return the reasons in a bit mask as words; a bit that NVML added later is shown by its number."""
    known = [word for bit, word in THROTTLE_WORDS.items() if bits & bit]
    rest = bits & ~sum(THROTTLE_WORDS)
    return (*known, f"0x{rest:x}") if rest else tuple(known)


def _bind_memory(nvml: Nvml, handle: Any) -> Bound:
    second, first = nvml.function("nvmlDeviceGetMemoryInfo_v2"), nvml.function("nvmlDeviceGetMemoryInfo")
    if second is None:
        return structure(MemoryInfo, _MEMORY, "nvmlDeviceGetMemoryInfo").bind(nvml, handle)
    out, old = MemoryV2(), MemoryInfo()
    out.version = sizeof(MemoryV2) | 2 << 24
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
    plain, out = c_uint(), TemperatureV1()
    out.version = sizeof(TemperatureV1) | 1 << 24
    plain_reference, reference = byref(plain), byref(out)

    def read(facts: Facts) -> int:
        code = FUNCTION_NOT_FOUND if old is None else old(handle, 0, plain_reference)
        degrees = plain.value if plain.value < 1 << 31 else plain.value - (1 << 32)
        if code in (FUNCTION_NOT_FOUND, DEPRECATED) and new is not None:
            code, degrees = new(handle, reference), out.temperature
        if code:
            facts.gaps["temperature"] = gap_of(code)
        elif degrees == -1:
            facts.gaps["temperature"] = "unsupported"  # all ones: the sensor does not exist
        else:
            facts.values["temperature"] = degrees
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


def _bind_remapped_rows(nvml: Nvml, handle: Any) -> Bound:
    function = nvml.function("nvmlDeviceGetRemappedRows")
    if function is None:
        return absent(("remapped_rows",))
    corrected, uncorrected, pending, failed = c_uint(), c_uint(), c_uint(), c_uint()
    arguments = (handle, byref(corrected), byref(uncorrected), byref(pending), byref(failed))

    def read(facts: Facts) -> int:
        code = function(*arguments)
        if code:
            facts.gaps["remapped_rows"] = gap_of(code)
        else:
            facts.values["remapped_rows"] = corrected.value + uncorrected.value
        return code

    return read


def field(key: str, identifier: int) -> Reader:
    """A value that NVML returns by field id instead of by a function."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        function = nvml.function("nvmlDeviceGetFieldValues")
        if function is None:
            return absent((key,))
        out = FieldValue()
        out.fieldId = identifier
        reference = byref(out)

        def read(facts: Facts) -> int:
            code = function(handle, 1, reference) or int(out.nvmlReturn)
            if code:
                facts.gaps[key] = gap_of(code)
            else:
                file(facts, key, out.value.uiVal)
            return code

        return read

    return Reader((key,), bind)


def _mode(value: int) -> str | None:
    return COMPUTE_MODES[value] if value < len(COMPUTE_MODES) else None


_MEMORY = {"total": "memory_total", "used": "memory_used", "free": "memory_free"}
MEMORY = Reader(("memory_used", "memory_total", "memory_free", "memory_reserved"), _bind_memory)

BAR1 = structure(Bar1Memory, {"bar1Used": "bar1_used", "bar1Total": "bar1_total"}, "nvmlDeviceGetBAR1MemoryInfo")

READERS: tuple[Reader, ...] = (
    structure(Utilization, {"gpu": "utilization", "memory": "memory_utilization"}, "nvmlDeviceGetUtilizationRates"),
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
    Reader(("remapped_rows",), _bind_remapped_rows),
    BAR1,
    number("compute_mode", "nvmlDeviceGetComputeMode", to=_mode),
    number("persistence_mode", "nvmlDeviceGetPersistenceMode", to=bool),
    number("mig_mode", "nvmlDeviceGetMigMode", after=1, to=bool),
    number("display_active", "nvmlDeviceGetDisplayActive", to=bool),
)
