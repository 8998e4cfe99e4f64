"""Shares: what a counter grew by belongs to the windows that were open since it was last read."""

from __future__ import annotations

from ..model.cadence import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from ..model.catalog import Gpu
    from .own_use import EnergyShare
    from .tally import Tally

    # a window or phase by its tally, with its seconds of one interval between samples
    Parts: TypeAlias = Sequence[tuple[Tally, float]]


class Shares:
    """The weight of each window since a value was last read; by default its seconds."""

    __slots__ = ("_weights", "total")

    def __init__(self) -> None:
        self._weights: dict[Tally, float] = {}
        self.total = 0.0

    def add(self, parts: Parts, seconds: float, rate: float = 1.0) -> None:
        """Add an interval between samples: each window's seconds of it, and all of it, at this rate."""
        weights = self._weights
        for tally, part in parts:
            weights[tally] = weights.get(tally, 0.0) + part * rate
        self.total += seconds * rate

    def take(self) -> Iterable[tuple[Tally, float]]:
        """Return the weight of each window, and start again."""
        weights, self._weights, self.total = self._weights, {}, 0.0
        return weights.items()

    def forget(self, tally: Tally) -> None:
        """Drop a window that nobody reads any more."""
        self._weights.pop(tally, None)


class EnergyShares:
    """The energy counter of one GPU, whose growth is shared among windows: by power and time, or by time if power is missing.

    `at` is the time of its last reading, None if it was never read. The time before the first reading is charged at the
    power of that moment.
    """

    __slots__ = ("_by_power", "_by_time", "_counter", "_uuid")

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._counter = Growth()
        self._by_time = Shares()
        self._by_power: Shares | None = Shares()

    @property
    def at(self) -> float | None:
        """When the counter was last read."""
        return self._counter.at

    def add(self, gpu: Gpu, parts: Parts, seconds: float, at: float, share: EnergyShare | None = None) -> float | None:
        """Add a sample; return the mean power since the last reading if the counter was read, else None.

        `share` is what of the time since then belongs to the program whose windows these are.
        """
        known = self._counter.at
        if known is None and gpu.energy is None:
            return None
        self._weigh(gpu.power_draw, parts, seconds)
        growth = self._counter.grown(gpu.energy, at)
        if self._counter.at == known:
            return None
        shares = self._by_time if self._by_power is None or self._by_power.total <= 0 else self._by_power
        if growth is not None:
            self._share(shares, growth[0], share)
        elif known is None and self._by_power is not None:
            self._share(self._by_power, self._by_power.total, share)  # watts times seconds
        self._by_time, self._by_power = Shares(), Shares()
        return None if growth is None else growth[0] / (at - growth[1])

    def forget(self, tally: Tally) -> None:
        """Drop a window that nobody reads any more."""
        self._by_time.forget(tally)
        if self._by_power is not None:
            self._by_power.forget(tally)

    def _weigh(self, power: float | None, parts: Parts, seconds: float) -> None:
        self._by_time.add(parts, seconds)
        if power is None:
            self._by_power = None  # one interval without power: until the next reading, only time tells
        elif self._by_power is not None:
            self._by_power.add(parts, seconds, power)

    def _share(self, shares: Shares, joules: float, share: EnergyShare | None) -> None:
        total = shares.total
        for tally, weight in shares.take():
            if total > 0 and weight > 0:
                tally.add_energy(self._uuid, joules * weight / total, share)
