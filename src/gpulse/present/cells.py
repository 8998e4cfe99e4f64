"""One value, one text and one severity: what every surface writes for a metric, why it is absent, and XID codes as text."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, Gpu
from ..model.condition import BRAKES, HEAT, xid_of
from .quantities import number_text, quantity_text
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
_HEADROOM = 8  # °C below the limit at which a GPU counts as hot


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
    return "critical" if degrees >= limit - 1 else "warn" if degrees >= limit - _HEADROOM else "calm"


def throttle_text(gpu: Gpu, worst: bool = False) -> str:
    """Return why a GPU is throttled, or an empty text; being idle is no reason. `worst` names one reason only."""
    reasons = gpu.throttle_reasons or ()
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
