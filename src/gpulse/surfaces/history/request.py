"""What is asked of the history: a stretch of time, some GPUs, some metrics; and the answer, fetched once."""

from __future__ import annotations

from ...errors import UnknownGpu
from ...model.catalog import GPU_METRICS
from ...model.select import metric_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.event import Event
    from ...store.history import GpuIdentity, HistoryReader, HistorySeries, Usage

METRICS = ("utilization", "sm_active", "memory_used", "power_draw", "temperature")


class HistoryRequest:
    """A question: from `start` to `end` in seconds since 1970, these metrics, these GPUs (None: all), at most `points` points, by owner."""

    def __init__(
        self, start: float, end: float, metrics: Sequence[str], gpus: Sequence[str] | None, points: int, by: str
    ) -> None:
        self.start = start
        self.end = end
        self.metrics = tuple(metrics)
        self.gpus = gpus
        self.points = points
        self.by = by


class HistoryAnswer:
    """What the history says: GPUs with their series by metric, the machine's CPU, who used what, and events."""

    def __init__(self, reader: HistoryReader, asked: HistoryRequest) -> None:
        self.asked = asked
        self.gpus = chosen(reader.gpus(asked.start, asked.end), asked.gpus)
        uuids = [gpu.uuid for gpu in self.gpus]
        found = reader.series(asked.metrics, uuids, asked.start, asked.end, asked.points)
        self._series = {(series.uuid, series.key): series for series in found}
        self.processes = [use for use in reader.processes(asked.start, asked.end) if use.uuid in uuids]
        self.newest = (reader.span() or (0.0, 0.0))[1]
        self.usage: list[Usage] = reader.usage(asked.start, asked.end, asked.by, uuids)
        self.events: list[Event] = [
            event
            for event in reader.events(asked.start, asked.end)
            if not event.uuids or asked.gpus is None or not set(uuids).isdisjoint(event.uuids)
        ]

    def series(self, gpu: GpuIdentity, key: str) -> HistorySeries | None:
        """Return one metric of one GPU; None when it was never recorded."""
        return self._series.get((gpu.uuid, key))

    @property
    def times(self) -> list[float]:
        """The moments that all series share."""
        return next((series.times for series in self._series.values()), [])


def metrics_named(names: Sequence[str] | None) -> list[str]:
    """Return the keys of metrics by name; raise UnknownMetric for one that is none."""
    return list(METRICS) if names is None else [metric_named(name, GPU_METRICS).key for name in names]


def chosen(gpus: Sequence[GpuIdentity], words: Sequence[str] | None) -> list[GpuIdentity]:
    """Return the GPUs that words name by index or UUID; raise UnknownGpu when one fits none that was recorded."""
    if words is None:
        return [*gpus]
    found = []
    for word in words:
        fits = [gpu for gpu in gpus if word == str(gpu.index) or gpu.uuid.lower().startswith(word.lower())]
        if not fits:
            have = ", ".join(str(gpu.index) for gpu in gpus if gpu.index is not None)
            raise UnknownGpu(f"there was no GPU {word!r} in this time;", f"there were {have or 'none'}.")
        found += [gpu for gpu in fits if gpu not in found]
    return found
