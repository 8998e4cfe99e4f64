"""Values as text: quantities with their units, times, durations, and the severity of a value."""

from __future__ import annotations

import time
from functools import lru_cache

from ..model.catalog import GPU_METRICS, Gpu
from ..model.condition import BRAKES, HEAT, xid_of
from ..units import duration_text, size_text
from .text import Untrusted, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.metric import Metric, Reading, Value

MISSING = "-"
THROTTLE = {
    "sw_power_cap": "power cap",
    "hw_slowdown": "hardware slowdown",
    "sw_thermal_slowdown": "too hot",
    "hw_thermal_slowdown": "too hot",
    "hw_power_brake_slowdown": "power brake",
    "current_limit": "current limit",
    "applications_clocks_setting": "clocks set lower",
    "sync_boost": "sync boost",
    "display_clock_setting": "display clocks",
}
ALARMS = HEAT | BRAKES
_STYLES = {"info": "label"}  # other severities are styles of their own
HEADROOM = 8  # °C below the limit at which a GPU counts as hot


def value_text(metric: Metric, value: Value | None, decimal: bool = False) -> str:
    """Return a value with its unit, short: 97 %, 71.2 GiB (76.4 GB if `decimal`), 691 W; a missing one is a dash."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple):
        return " ".join(clean(part) if isinstance(part, str) else number_text(part) for part in value) or "none"
    return f"P{value:.0f}" if metric is Gpu.pstate else quantity_text(metric.unit.symbol, value, decimal)


def severity_style(severity: str) -> str:
    """Return the style that a terminal or page shows a condition in: critical, warn, good or label."""
    return _STYLES.get(severity, severity)


def severity(metric: Metric, reading: Reading) -> str:
    """Return calm, warn or critical for a value; calm if there is none."""
    value = reading.get(metric.key)
    if metric is Gpu.temperature and isinstance(reading, Gpu):
        return _heat(reading)
    if metric is Gpu.throttle_reasons and isinstance(value, tuple):
        return "critical" if ALARMS.intersection(str(word) for word in value) else "calm"
    if not isinstance(value, (int, float)):
        return "calm"
    if metric.critical is not None and value >= metric.critical:
        return "critical"
    return "warn" if metric.warn is not None and value >= metric.warn else "calm"


def _heat(gpu: Gpu) -> str:
    """Judge a temperature by the GPU's own limit where it says one: 85 °C is fine for one card and near the end for another."""
    degrees = gpu.temperature
    if degrees is None:
        return "calm"
    limit = gpu.temperature_limit or Gpu.temperature.critical or 90.0
    return "critical" if degrees >= limit - 1 else "warn" if degrees >= limit - HEADROOM else "calm"


def throttle_text(gpu: Gpu, worst: bool = False) -> str:
    """Return why a GPU is throttled, or an empty text; being idle is no reason. `worst` names one reason only."""
    return _throttle_text(gpu.throttle_reasons, worst) if gpu.throttle_reasons else ""


@lru_cache(maxsize=64)
def _throttle_text(reasons: tuple[str, ...], worst: bool) -> str:
    if worst:
        return "".join(map(clean, throttle_words(sorted(reasons, key=lambda reason: reason not in ALARMS))[:1]))
    return "".join(map(clean, throttle_words(reasons)))


def throttle_words(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return throttle reasons as text with commas between, each once; a reason that is not known is Untrusted."""
    words = [word for word in reasons if word != "gpu_idle"]
    if "hw_thermal_slowdown" in words or "hw_power_brake_slowdown" in words:
        words = [word for word in words if word != "hw_slowdown"]  # the bit that is set with either of them
    parts: list[str] = []
    for word in dict.fromkeys(THROTTLE.get(word, Untrusted(word)) for word in words):
        parts += [", ", word] if parts else [word]
    return tuple(parts)


_COUNTED = frozenset({"Hopper", "Blackwell", "Rubin"})  # architectures with GPM, which measures activity


def is_absent(key: str, gpus: Iterable[Gpu]) -> bool:
    """Return whether none of these GPUs can have a metric; a GPU that does not respond tells nothing about it."""
    gaps = [gpu.gaps.get(key) for gpu in gpus if gpu.state == "ok"]
    return bool(gaps) and all(gap == "unsupported" for gap in gaps)


def why_absent(key: str, gpus: Iterable[Gpu]) -> str:
    """Return why none of these GPUs can have a metric: needs Hopper or newer; measured per MIG instance."""
    known = [gpu for gpu in gpus if gpu.state == "ok"]
    divided = [gpu for gpu in known if gpu.instances or gpu.mig_mode]
    if divided and len(divided) == len(known):
        parts = [part for gpu in divided for part in gpu.instances]
        if any(part.get(key) is not None for part in parts):
            return "measured per MIG instance"
        return "not available with MIG"
    nvidia = all((gpu.vendor or "nvidia") == "nvidia" for gpu in known)
    if GPU_METRICS[key].group == "activity" and nvidia and not any(gpu.architecture in _COUNTED for gpu in known):
        return "needs Hopper or newer"
    return "not supported by this GPU" if len(known) == 1 else "not supported by these GPUs"


def xid_text(code: float) -> str:
    """Return a code with its meaning: XID 79 (GPU has fallen off the bus)."""
    meaning = xid_of(code).meaning
    return f"XID {code:.0f} ({meaning})" if meaning else f"XID {code:.0f}"


def xid_remedy(code: float) -> str:
    """Return what to do about a code; empty for one that is not known."""
    return xid_of(code).remedy


DASH = "–"  # a missing value in documents and tables; `cells.MISSING` is its ASCII form for terminals
_FIRST_WATT_HOURS = 9999.5  # joules from which an energy is written in Wh: below, the text has at most four digits
_FIRST_KILOWATTS = 9999.5  # watts; only sums over GPUs reach that
_DAY = 86_400
_MINUTE = 59.95  # seconds from which a time is written in minutes: below, it would be rounded to 60.0 s


def energy_text(joules: float | None) -> str:
    """Return an energy: 0.034 J, 321 J, 12.5 Wh, 1.11 kWh; a dash when unknown. Joules end at 10 kJ, Wh at 1 kWh."""
    if joules is None:
        return DASH
    if joules < _FIRST_WATT_HOURS:
        return f"{_three_digits(joules)} J"
    hours = joules / 3600
    return f"{_three_digits(hours)} Wh" if hours < 999.5 else f"{_three_digits(hours / 1000)} kWh"


def seconds_text(seconds: float) -> str:
    """Return a measured time: 312 µs, 45.1 ms, 3.21 s, and from a minute on 12m05s."""
    if seconds >= _MINUTE:
        return duration_text(max(60.0, seconds))
    if seconds < 0.0009995:
        return f"{_three_digits(seconds * 1e6)} µs"
    return f"{_three_digits(seconds * 1e3)} ms" if seconds < 0.9995 else f"{_three_digits(seconds)} s"


def quantity_text(symbol: str, value: float | None, decimal: bool = False) -> str:
    """Return a number in the unit with this symbol, short: 97 %, 71.2 GiB (76.4 GB if `decimal`), 691 W, 12.3 kW; a dash when missing."""
    if value is None:
        return DASH
    if symbol in ("B", "B/s"):
        return size_text(value, decimal=decimal) + symbol[1:]
    if symbol == "s":
        return seconds_text(value) if 0 < value < 0.1 else duration_text(value)
    if symbol == "seconds":
        return seconds_text(value)
    if symbol == "J":
        return energy_text(value)
    if symbol == "W" and value >= _FIRST_KILOWATTS:
        return f"{value / 1e3:.1f} kW" if value < 999_950 else f"{value / 1e6:.2f} MW"
    if symbol.startswith("tok/"):
        return f"{_three_digits(value)} {symbol}"
    return f"{value if abs(value) > 0.5 else 0:.0f} {symbol}" if symbol else number_text(value)


def number_text(value: float) -> str:
    """Return a number without a unit: all digits of an integer, six of any other; only one below 0.0001 is in scientific notation."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value % 1 == 0 or abs(value) >= 1e5 else f"{value:g}"


def rate_text(per_second: float) -> str:
    """Return how often something happens per second, without a unit: 0.0125, 28.5, 12,345."""
    return f"{per_second:,.0f}" if per_second >= 999.5 else f"{per_second:.3g}"


def clock_text(moment: float, utc: bool = False) -> str:
    """Return a time of day: 14:03:07, by this machine's clock or in UTC."""
    return time.strftime("%H:%M:%S", _fields(moment, utc))


def moment_text(moment: float, utc: bool = False) -> str:
    """Return a date with the time of day: 2026-11-15 14:03:07, by this machine's clock or in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC" if utc else "%Y-%m-%d %H:%M:%S", _fields(moment, utc))


def when_text(moment: float, now: float) -> str:
    """Return a time, short: 14:03, yesterday 14:03, tomorrow 14:03, Nov 12 14:03, 2025-11-12."""
    then, today = time.localtime(moment), time.localtime(now)
    clock = time.strftime("%H:%M", then)
    for days, word in ((0, ""), (-1, "yesterday "), (1, "tomorrow ")):
        if then[:3] == time.localtime(now + days * _DAY)[:3]:
            return f"{word}{clock}"
    return time.strftime("%b %d %H:%M" if then.tm_year == today.tm_year else "%Y-%m-%d", then)


def period_text(start: float, end: float) -> str:
    """Return a period by this machine's clock, with its time zone: 2026-11-15 14:03:07 to 16:03:07 CET."""
    zones = [zone_text(start), zone_text(end)]
    same_day = _fields(start, False)[:3] == _fields(end, False)[:3]
    last = clock_text(end) if same_day else moment_text(end)
    return f"{moment_text(start)}{f' {zones[0]}' if zones[0] != zones[1] else ''} to {last} {zones[1]}"


def zone_text(moment: float) -> str:
    """Return the name of this machine's time zone at a time: CET, UTC."""
    return time.strftime("%Z", time.localtime(moment)) or "local time"


def elapsed_text(seconds: float) -> str:
    """Return a position in a recording: 0:07, 12:05, 1:02:03; with tenths unless they are zero."""
    tenths = int(max(0.0, seconds) * 10 + 1e-6)
    whole, rest = divmod(tenths, 10)
    hours, minutes = divmod(whole // 60, 60)
    text = f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
    return f"{text}.{rest}" if rest else text


def _three_digits(value: float) -> str:
    size = abs(value)
    digits = 0 if size >= 99.95 or not value else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:.{digits}f}"


def _fields(moment: float, utc: bool) -> time.struct_time:
    return time.gmtime(moment) if utc else time.localtime(moment)
