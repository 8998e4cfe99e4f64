"""Which GPUs or processes a query shows, and in which order."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu
from ...model.metric import Reading
from ...model.select import Wanted, metric_named
from ...model.snapshot import Snapshot
from .where import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    Kind = TypeVar("Kind", bound=Reading)


class Choice:
    """A filter and an order over the GPUs of a snapshot, or with `apps` over the processes of each; either may be absent."""

    def __init__(self, where: str | None, sort: str | None, *, apps: bool = False) -> None:
        """Read both; raise UsageError when one cannot be."""
        metrics = PROCESS_METRICS if apps else GPU_METRICS
        self._apps = apps
        self._filter = Filter(where, metrics) if where else None
        self._falling = bool(sort) and (sort or "").startswith("-")
        self._key = metric_named((sort or "").lstrip("-+"), metrics).key if sort else None
        keys = {*(self._filter.keys if self._filter else ()), *([self._key] if self._key else ())}
        self.wanted = Wanted((), keys) if apps else Wanted(keys)

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with what passes, in order; what lacks the value comes last."""
        if not self._filter and not self._key:
            return snapshot
        gpus = tuple(map(self._processes, snapshot.gpus)) if self._apps else tuple(self._chosen(snapshot.gpus))
        return snapshot.replace(gpus=gpus)

    def _chosen(self, readings: Iterable[Kind]) -> list[Kind]:
        kept = [reading for reading in readings if self._filter is None or self._filter(reading)]
        if self._key is None:
            return kept
        known = [reading for reading in kept if reading.get(self._key) is not None]
        unknown = [reading for reading in kept if reading.get(self._key) is None]
        return sorted(known, key=self._value, reverse=self._falling) + unknown

    def _processes(self, gpu: Gpu) -> Gpu:
        return Gpu(
            dict(gpu.items()),
            gpu.gaps,
            state=gpu.state,
            since=gpu.since,
            processes=tuple(self._chosen(gpu.processes)),
            instances=tuple(map(self._processes, gpu.instances)),
        )

    def _value(self, reading: Reading) -> tuple[float, tuple[str, ...]]:
        value = reading.get(self._key or "")
        words = value if isinstance(value, tuple) else (value,)
        return value if isinstance(value, (int, float)) else 0.0, tuple(map(str, words))
