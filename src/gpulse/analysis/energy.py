"""Energy between two readings of a counter, shared by time; estimated from power where a GPU has no counter."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.catalog import Gpu


TELLING = 1.0  # seconds a window must last for its energy to mean something: the counter moves every 0.1 s


class EnergyCounter:
    """The counter of one GPU. It is read every few seconds, so most samples repeat an old value; `at` is its last reading."""

    __slots__ = ("at", "joules")

    def __init__(self) -> None:
        self.at: float | None = None
        self.joules = 0.0

    def grown(self, joules: float | None, at: float) -> tuple[float, float] | None:
        """Return the joules since the last reading and the time of that one; None when there is no new growth.

        A counter that fell was reset with the driver: counting begins anew.
        """
        if joules is None or (self.at is not None and joules == self.joules):
            return None
        before, since = self.joules, self.at
        self.joules, self.at = joules, at
        return None if since is None or joules < before or at <= since else (joules - before, since)


class Meter:
    """The energy of one GPU by phase."""

    __slots__ = ("_counter", "_drawn", "_passed", "_pending")

    def __init__(self) -> None:
        self._counter = EnergyCounter()
        self._passed = 0.0
        self._pending: dict[str, float] = {}
        self._drawn: dict[str, float] = {}

    def add(self, gpu: Gpu, seconds: float, phase: str) -> Iterator[tuple[str, float]]:
        """Yield phases with the joules that are now known to belong to them."""
        if gpu.power_draw is not None:
            self._drawn[phase] = self._drawn.get(phase, 0.0) + gpu.power_draw * seconds
        if self._counter.at is not None:
            self._pending[phase] = self._pending.get(phase, 0.0) + seconds
        self._passed += seconds
        read = self._counter.at
        growth = self._counter.grown(gpu.energy, self._passed)
        if self._counter.at == read:
            return
        pending, self._pending = self._pending, {}
        if growth is not None:
            whole = sum(pending.values()) or 1.0
            yield from ((name, growth[0] * share / whole) for name, share in pending.items())

    def estimate(self) -> dict[str, float] | None:
        """Return joules by phase from power alone, for a GPU that never had a counter; None for one that has."""
        return self._drawn if self._counter.at is None else None
