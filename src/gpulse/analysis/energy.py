"""Energy between two readings of a counter, shared by time; estimated from power where a GPU has no counter."""

from __future__ import annotations

from ..model.growth import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.catalog import Gpu


TELLING = 1.0  # seconds a window must last for its energy to mean something: the counter moves every 0.1 s


class Meter:
    """The energy of one GPU by phase."""

    __slots__ = ("_counter", "_drawn", "_passed", "_pending", "_since")

    def __init__(self) -> None:
        self._counter = Growth()
        self._passed = 0.0
        self._pending: dict[str, float] = {}
        self._drawn: dict[str, float] = {}
        self._since: dict[str, float] = {}  # joules by phase from power alone, since the last reading of the counter

    def add(self, gpu: Gpu, seconds: float, phase: str, unseen: bool = False) -> Iterator[tuple[str, float]]:
        """Yield phases with the joules that are now known to belong to them.

        `unseen`: a hole precedes the sample. The counter grew in it, too, so the watched time since its last reading is charged
        from power.
        """
        if gpu.power_draw is not None:
            for sums in (self._drawn, self._since):
                sums[phase] = sums.get(phase, 0.0) + gpu.power_draw * seconds
        if unseen and self._counter.at is not None:
            yield from self._since.items()
            self._passed += seconds
            self._counter = Growth(self._counter.value if gpu.energy is None else gpu.energy, self._passed)
            self._pending, self._since = {}, {}
            return
        if self._counter.at is not None:
            self._pending[phase] = self._pending.get(phase, 0.0) + seconds
        self._passed += seconds
        read = self._counter.at
        growth = self._counter.grown(gpu.energy, self._passed)
        if self._counter.at == read:
            return
        pending, self._pending, self._since = self._pending, {}, {}
        if growth is not None:
            whole = sum(pending.values()) or 1.0
            yield from ((name, growth[0] * share / whole) for name, share in pending.items())

    def rest(self) -> dict[str, float]:
        """Return joules by phase since the last reading of the counter, from power alone."""
        return {} if self._counter.at is None else self._since

    def estimate(self) -> dict[str, float] | None:
        """Return joules by phase from power alone, for a GPU that never had a counter; None for one that has."""
        return self._drawn if self._counter.at is None else None
