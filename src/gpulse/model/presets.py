"""Metrics that belong together, by name: what screens show, what makes curves, what is known of users.

A metric is in a preset by a word on its line in the catalog, so that a new one reaches every surface it belongs to by its line alone.
"""

from __future__ import annotations

from .catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .metric import Metric

# The order of groups in charts and lists of curves; within a group, that of the catalog.
_GROUPS = (
    "utilization",
    "activity",
    "engines",
    "memory",
    "power",
    "thermal",
    "clocks",
    "links",
    "health",
    "modes",
    "details",
)


def _presets(metrics: Mapping[str, Metric]) -> dict[str, tuple[str, ...]]:
    """Return the keys of each preset."""
    found: dict[str, list[str]] = {}
    for key, metric in metrics.items():
        for word in metric.presets.split():
            found.setdefault(word, []).append(key)
    return {word: tuple(keys) for word, keys in found.items()}


def _by_group(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(keys, key=lambda key: _GROUPS.index(GPU_METRICS[key].group)))


_GPU, _PROCESS, _HOST = _presets(GPU_METRICS), _presets(PROCESS_METRICS), _presets(HOST_METRICS)
SUMMARY = _by_group(_GPU["summary"])  # what tells most about a GPU, where there is room for little
GLANCE = _GPU["glance"]  # what a screen shows of each GPU
CURVES = _by_group(_GPU["curves"])  # what is worth a curve over time
TRAINING = _GPU["training"]  # what a monitor logs by default: cheap on every GPU, and enough to tell what a run did
DIAGNOSIS = _GPU["diagnosis"]  # what rules of the diagnosis can read over a window
HOST_CURVES = _HOST["curves"]
HOST_VIEW = _HOST["view"]  # what the view of the host shows besides, read only while it is open
PROCESS_EVIDENCE = _PROCESS["diagnosis"]
USERS = _PROCESS["users"]  # what is read of each process to say who uses a GPU
# Activity that the hardware counts; reading it costs an NVIDIA GPU 1.4 ms, as much as ten of the others together.
COSTLY = frozenset(key for key, metric in GPU_METRICS.items() if metric.group == "activity") | {
    *("pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")
}
# What a diagnosis needs besides, wherever it samples, so that the same minute gets the same verdict.
EVIDENCE = ("utilization_trace",)
# What the lines of code at which a GPU waits need besides.
TIMED_POWER = ("power_trace", "power_trace_times")
# Values that the driver sampled by itself since they were last read. They appear once, in the sample that read them.
TRACES = frozenset({*EVIDENCE, *TIMED_POWER})
