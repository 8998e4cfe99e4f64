"""Which metrics are drawn as charts, in which color, and what replaces one that the GPUs cannot have."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS
from ...model.presets import CURVES
from ...present.cells import is_absent, why_absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.catalog import Gpu
    from ...model.metric import Metric
    from .state import State

# What still tells how busy a GPU is that cannot measure its activity, best first.
_INSTEAD = ("power_draw", "temperature", "clock_sm", "memory_percent", "memory_used")
# The color of a metric is the same in bars, charts and the view of a GPU.
_STYLES = {
    "utilization": "busy",
    "activity": "busy",
    "engines": "busy",
    "memory": "memory",
    "power": "chart3",
    "thermal": "chart3",
    "clocks": "chart3",
    "links": "chart4",
}


class ChartChoice:
    """A metric to draw; `note` says which other metric it replaces and why, or is empty."""

    __slots__ = ("metric", "note")

    def __init__(self, metric: Metric, note: str = "") -> None:
        self.metric = metric
        self.note = note


def metric_style(metric: Metric) -> str:
    """Return the style of a metric's bars and charts."""
    return _STYLES.get(metric.group, "busy")


def chosen(state: State, gpus: Sequence[Gpu], more: bool = False) -> list[ChartChoice]:
    """Return the metrics of the settings, absent ones replaced; with `more`, then all others that these GPUs have."""
    keys = [key for key in state.settings.charts if key in GPU_METRICS]
    present = [key for key in keys if not is_absent(key, gpus)]
    spare = [key for key in _INSTEAD if key not in keys and _has(key, gpus)]
    found = []
    for key in keys:
        if key in present:
            found.append(ChartChoice(GPU_METRICS[key]))
        elif spare:
            note = f"{GPU_METRICS[key].title}: {why_absent(key, gpus)}"
            found.append(ChartChoice(GPU_METRICS[spare.pop(0)], note))
    if more:
        drawn = {choice.metric.key for choice in found}
        found += [ChartChoice(GPU_METRICS[key]) for key in CURVES if key not in drawn and _has(key, gpus)]
    return found or [ChartChoice(GPU_METRICS[key], why_absent(key, gpus)) for key in keys[:1]]


def _has(key: str, gpus: Sequence[Gpu]) -> bool:
    return any(gpu.get(key) is not None for gpu in gpus)
