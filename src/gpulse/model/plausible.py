"""The one check of values against the catalog: of drivers, recordings, other machines, Prometheus and model servers.

A value of the wrong type, outside the range of its metric, or larger than what it is a part of, is dropped and becomes a gap.
"""

from __future__ import annotations

from ..units import BYTES
from .catalog import GPU_METRICS, HOST_METRICS
from .metric import Flag, Number, Numbers, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .metric import Gap, Metric, Value

# Rounding in the driver can make a percentage slightly exceed 100; beyond this limit it is not a percentage.
_SLACK = 1.0
_MOST_ENTRIES = 1 << 14  # of a list
_LONGEST = 1 << 16  # characters of a text
# Memory in use, and the memory that it is a part of. Clocks are no such parts: they may exceed their nominal maximum.
_PARTS = {
    id(metrics): [(key, metric.whole) for key, metric in metrics.items() if metric.whole and metric.unit is BYTES]
    for metrics in (GPU_METRICS, HOST_METRICS)
}


def plausible(metric: Metric, value: Any) -> Value | None:
    """Return a value as the catalog allows it; None for one of the wrong type or outside the range. 100 for a share just above it.

    A list with a wrong entry is dropped as a whole: its entries belong to those of other lists at the same place.
    """
    if isinstance(metric, Number):
        return _number(metric, value)
    if isinstance(metric, Text):
        return value if isinstance(value, str) and len(value) <= _LONGEST else None
    if isinstance(metric, Flag):
        return value if isinstance(value, bool) else None
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_ENTRIES:
        return None
    if not isinstance(metric, Numbers):
        return tuple(value) if all(isinstance(word, str) and len(word) <= _LONGEST for word in value) else None
    numbers = tuple([_number(metric, entry) for entry in value])
    return None if None in numbers else numbers  # type: ignore[return-value]


def _number(metric: Metric, value: Any) -> float | None:
    """Return a number in the range of its metric, else None; NaN is in no range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if metric.low <= value <= metric.high:
        return value
    return 100.0 if metric.high == 100 and 100 < value <= 100 + _SLACK else None


def drop_implausible(values: dict[str, Any], gaps: dict[str, Gap], metrics: Mapping[str, Metric]) -> list[str]:
    """Remove implausible values in place, each with the gap `failed`, and return their keys; lists become tuples."""
    wrong: list[str] = []
    for key, value in values.items():
        metric = metrics.get(key)
        if metric is None:
            continue
        sound = plausible(metric, value)
        if sound is None:
            wrong.append(key)
        elif sound is not value:
            values[key] = sound
    wrong += [key for key in _above_whole(values, metrics) if key not in wrong]
    for key in wrong:
        del values[key]
        gaps[key] = "failed"
    return wrong


def _above_whole(values: Mapping[str, Any], metrics: Mapping[str, Metric]) -> list[str]:
    """Return the parts that are larger than the whole: more memory in use than there is.

    Where the GPU uses the memory of the host, the whole may be only what is set aside for it, and programs share pages.
    """
    if values.get("memory_unified") is True:
        return []
    return [
        key
        for key, whole in _PARTS.get(id(metrics), ())
        if key in values and whole in values and _exceeds(values[key], values[whole])
    ]


def _exceeds(part: Any, whole: Any) -> bool:
    return isinstance(part, (int, float)) and isinstance(whole, (int, float)) and part > whole
