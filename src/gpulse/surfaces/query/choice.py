"""Which GPUs or processes a query shows, and in which order."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS
from ...model.metric import Reading
from ...model.select import Wanted, metric_named
from ...model.snapshot import Snapshot
from .where import Filter


class Choice:
    """A filter and an order over the GPUs of a snapshot; either may be absent."""

    def __init__(self, where: str | None, sort: str | None) -> None:
        """Read both; raise UsageError when one cannot be."""
        self._filter = Filter(where, GPU_METRICS) if where else None
        self._falling = bool(sort) and (sort or "").startswith("-")
        self._key = metric_named((sort or "").lstrip("-+")).key if sort else None
        self.wanted = Wanted({*(self._filter.keys if self._filter else ()), *([self._key] if self._key else ())})

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the GPUs that pass, in order; one without the value comes last."""
        gpus = [gpu for gpu in snapshot.gpus if self._filter is None or self._filter(gpu)]
        if self._key is not None:
            known = [gpu for gpu in gpus if gpu.get(self._key) is not None]
            unknown = [gpu for gpu in gpus if gpu.get(self._key) is None]
            gpus = sorted(known, key=self._value, reverse=self._falling) + unknown
        return Snapshot(snapshot.time, tuple(gpus), snapshot.host, snapshot.driver, snapshot.problems)

    def _value(self, reading: Reading) -> tuple[bool, float, str]:
        value = reading.get(self._key or "")
        return isinstance(value, str), value if isinstance(value, (int, float)) else 0.0, str(value)
