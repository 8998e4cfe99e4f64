"""Energy between two readings of a counter, shared by power and time; estimated from power where a GPU has no counter."""

from __future__ import annotations

from ..model.cadence import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..model.catalog import Gpu


TELLING = 1.0  # seconds a window must last for its energy to mean something: the counter moves every 0.1 s


class Meter:
    """The energy of one GPU by phase, and of the whole run under an empty name."""

    __slots__ = ("_counter", "_drawn", "_passed", "_pending", "_powered", "_since")

    def __init__(self) -> None:
        self._counter = Growth()
        self._passed = 0.0
        self._pending: dict[str, float] = {}
        self._drawn: dict[str, float] = {}
        self._powered = True  # whether power is known for all the time since the last reading of the counter
        self._since: dict[str, float] = {}  # joules by phase from power alone, since the last reading of the counter

    def add(self, gpu: Gpu, parts: Mapping[str, float], unseen: bool = False) -> Iterator[tuple[str, float]]:
        """Yield names with the joules that are now known to belong to them.

        `parts` are the seconds of the sample's interval in each phase, and of all of it under an empty name. The growth of the
        counter is shared by power and time, or by time if power is missing. `unseen`: a hole precedes the sample. The counter
        grew in it, too, so the watched time since its last reading is charged from power.
        """
        if gpu.power_draw is not None:
            for sums in (self._drawn, self._since):
                _add(sums, parts, gpu.power_draw)
        self._powered = self._powered and gpu.power_draw is not None
        if unseen and self._counter.at is not None:
            yield from self._since.items()
            self._passed += parts[""]
            self._counter = Growth(self._counter.value if gpu.energy is None else gpu.energy, self._passed)
            self._restart()
            return
        _add(self._pending, parts, 1.0)
        self._passed += parts[""]
        read = self._counter.at
        growth = self._counter.grown(gpu.energy, self._passed)
        if self._counter.at == read:
            return
        weights = self._since if self._powered and self._since.get("", 0.0) > 0 else self._pending
        whole = weights.get("", 0.0) or 1.0
        if growth is not None:
            yield from ((name, growth[0] * share / whole) for name, share in weights.items())
        elif read is None and self._powered:
            yield from self._since.items()  # the time before the first reading
        self._restart()

    def _restart(self) -> None:
        self._pending, self._since, self._powered = {}, {}, True

    def rest(self) -> dict[str, float]:
        """Return joules by phase since the last reading of the counter, from power alone."""
        return {} if self._counter.at is None else self._since

    def estimate(self) -> dict[str, float] | None:
        """Return joules by phase from power alone, for a GPU that never had a counter; None for one that has."""
        return self._drawn if self._counter.at is None else None


def _add(sums: dict[str, float], parts: Mapping[str, float], rate: float) -> None:
    for name, seconds in parts.items():
        sums[name] = sums.get(name, 0.0) + seconds * rate
