"""Energy over a run: what the counters of GPUs grew, shared among phases; from power where a GPU has no counter."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.catalog import Gpu


class Meter:
    """The energy of one GPU. A counter is read every few seconds, so what it grew is shared by time since its last reading."""

    __slots__ = ("_counter", "_drawn", "_pending")

    def __init__(self) -> None:
        self._counter: float | None = None
        self._pending: dict[str, float] = {}
        self._drawn: dict[str, float] = {}

    def add(self, gpu: Gpu, seconds: float, phase: str) -> Iterator[tuple[str, float]]:
        """Yield phases with the joules that are now known to belong to them."""
        if gpu.power_draw is not None:
            self._drawn[phase] = self._drawn.get(phase, 0.0) + gpu.power_draw * seconds
        if self._counter is not None:
            self._pending[phase] = self._pending.get(phase, 0.0) + seconds
        if gpu.energy is None or gpu.energy == self._counter:
            return
        grown = 0.0 if self._counter is None else gpu.energy - self._counter
        self._counter = gpu.energy
        pending, self._pending = self._pending, {}
        if grown > 0:  # one that fell was reset with the driver: begin anew
            whole = sum(pending.values()) or 1.0
            yield from ((name, grown * share / whole) for name, share in pending.items())

    def estimate(self) -> dict[str, float] | None:
        """Return joules by phase from power alone, for a GPU that never had a counter; None for one that has."""
        return self._drawn if self._counter is None else None
