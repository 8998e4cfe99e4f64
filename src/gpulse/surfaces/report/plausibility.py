"""Implausible numbers taken out of a snapshot: a recording may hold anything."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, Gpu
from ...model.snapshot import Snapshot
from ...sampling.assemble import corrections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from ...model.metric import Metric, Reading

    Some = TypeVar("Some", bound=Reading)


def believed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without implausible values; the same one when all are plausible."""
    host = _believed(snapshot.host, HOST_METRICS)
    gpus = tuple(_gpu(gpu) for gpu in snapshot.gpus)
    if host is snapshot.host and all(new is old for new, old in zip(gpus, snapshot.gpus, strict=True)):
        return snapshot
    return snapshot.replace(gpus=gpus, host=host)


def _gpu(gpu: Gpu) -> Gpu:
    sound = _believed(gpu, GPU_METRICS)
    processes = tuple(_believed(process, PROCESS_METRICS) for process in gpu.processes)
    instances = tuple(_gpu(instance) for instance in gpu.instances)
    parts = (*processes, *instances)
    if sound is gpu and all(new is old for new, old in zip(parts, (*gpu.processes, *gpu.instances), strict=True)):
        return gpu
    return Gpu(
        dict(sound.items()), gpu.gaps, state=gpu.state, since=gpu.since, processes=processes, instances=instances
    )


def _believed(reading: Some, metrics: Mapping[str, Metric]) -> Some:
    found = corrections(reading.items(), metrics)
    return reading.replace(**found) if found else reading
