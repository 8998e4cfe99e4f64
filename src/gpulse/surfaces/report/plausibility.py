"""Numbers nobody should believe, taken out: a recording may hold anything."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, Gpu
from ...model.metric import Number
from ...model.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from ...model.metric import Metric, Reading

    Some = TypeVar("Some", bound=Reading)

MOST = 1e18  # what no metric passes, whatever its own bounds: sums over a year stay finite


def _bounds(metrics: Mapping[str, Metric]) -> dict[str, tuple[float, float]]:
    return {key: (metric.low, min(metric.high, MOST)) for key, metric in metrics.items() if isinstance(metric, Number)}


_GPU, _HOST, _PROCESS = map(_bounds, (GPU_METRICS, HOST_METRICS, PROCESS_METRICS))


def believed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without values outside their metric's bounds; the same one when all are inside."""
    host = _believed(snapshot.host, _HOST)
    gpus = tuple(_gpu(gpu) for gpu in snapshot.gpus)
    if host is snapshot.host and all(new is old for new, old in zip(gpus, snapshot.gpus, strict=True)):
        return snapshot
    return Snapshot(snapshot.time, gpus, host, snapshot.driver, snapshot.problems)


def _gpu(gpu: Gpu) -> Gpu:
    sound = _believed(gpu, _GPU)
    processes = tuple(_believed(process, _PROCESS) for process in gpu.processes)
    instances = tuple(_gpu(instance) for instance in gpu.instances)
    parts = (*processes, *instances)
    if sound is gpu and all(new is old for new, old in zip(parts, (*gpu.processes, *gpu.instances), strict=True)):
        return gpu
    return Gpu(
        dict(sound.items()), gpu.gaps, state=gpu.state, since=gpu.since, processes=processes, instances=instances
    )


def _believed(reading: Some, bounds: Mapping[str, tuple[float, float]]) -> Some:
    bad = [
        key
        for key, value in reading.items()
        if key in bounds and isinstance(value, (int, float)) and not bounds[key][0] <= value <= bounds[key][1]
    ]
    return reading.replace(**dict.fromkeys(bad)) if bad else reading
