"""Counters of energy and CPU time, shared out among the windows that were open meanwhile; and what GPU time and energy cost."""

from __future__ import annotations

from ..model.snapshot import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypeAlias

    from ..model.catalog import Gpu, Process
    from ..model.serving import Tariff
    from ..store.history import Usage
    from .summary import Summary
    from .tally import Tally

    # a window or phase by its tally, with its seconds of one interval between samples
    Parts: TypeAlias = Sequence[tuple[Tally, float]]

TELLING = 1.0  # seconds a window must last for its energy to mean something: the counter moves every 0.1 s


_COUNTERS = {"cpu_percent": "cpu_time", "tree_cpu_percent": "tree_cpu_time"}


class CpuMeter:
    """The CPU time of one program, shared among windows. A rate of the last seconds says nothing about the next ones, so means come
    from counters.
    """

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        self._counters = {key: (Growth(), Shares()) for key in _COUNTERS}

    def add(self, program: Process | None, parts: Parts, seconds: float, at: float) -> None:
        """Add a sample: the windows' seconds of its interval, and all of it."""
        for key, (counter, shares) in self._counters.items():
            shares.add(parts, seconds)
            value = None if program is None else program.get(_COUNTERS[key])
            growth = counter.since(value if isinstance(value, (int, float)) else None, at)
            if growth is not None:
                for tally, part in shares.take():
                    tally.add_cpu(key, growth[0] * part / (at - growth[1]), part)
            elif counter.at in (None, at):
                shares.take()  # nothing to compare with before the first reading

    def forget(self, window: Tally) -> None:
        """Drop a window that nobody reads any more."""
        for _, shares in self._counters.values():
            shares.forget(window)


class Shares:
    """The weight of each window since a value was last read; by default its seconds."""

    __slots__ = ("_weights", "total")

    def __init__(self) -> None:
        self._weights: dict[Tally, float] = {}
        self.total = 0.0

    def add(self, parts: Parts, seconds: float, rate: float = 1.0) -> None:
        """Add an interval between samples: each window's seconds of it, and all of it, at this rate."""
        weights = self._weights
        for window, part in parts:
            weights[window] = weights.get(window, 0.0) + part * rate
        self.total += seconds * rate

    def take(self) -> list[tuple[Tally, float]]:
        """Return the weight of each window, and start again."""
        weights, self._weights, self.total = self._weights, {}, 0.0
        return [*weights.items()]

    def forget(self, window: Tally) -> None:
        """Drop a window that nobody reads any more."""
        self._weights.pop(window, None)


class EnergyMeter:
    """The energy counter of one GPU, whose growth is shared among windows: by power and time, or by time if power is missing.

    `at` is the time of its last reading, None if it was never read. `estimated`: there is no counter, but power.
    """

    __slots__ = ("_by_power", "_by_time", "_counter", "_powered", "estimated")

    def __init__(self) -> None:
        self._counter = Growth()
        self._by_time = Shares()
        self._by_power = Shares()
        self._powered = True  # whether power is known for all the time since the last reading
        self.estimated = False

    @property
    def at(self) -> float | None:
        """When the counter was last read."""
        return self._counter.at

    def add(
        self, gpu: Gpu, parts: Parts, seconds: float, at: float, unseen: bool = False
    ) -> tuple[list[tuple[Tally, float]], float | None]:
        """Add a sample; return the joules that are now known to belong to windows, and the mean power since the last reading.

        `parts` are the windows' seconds of the sample's interval, `seconds` all of it. The time before the first reading is charged from
        power. `unseen`: a hole precedes the sample. The counter grew in it, too, so the watched time since its last reading is
        charged from power.
        """
        read = self._counter.at
        self._by_time.add(parts, seconds)
        if gpu.power_draw is None:
            self._powered = False  # one interval without power: until the next reading, only time tells
        else:
            self._by_power.add(parts, seconds, gpu.power_draw)
        if unseen and read is not None:
            self._counter = Growth() if gpu.energy is None else Growth(gpu.energy, at)
            return self._charged(self._by_power), None
        growth = self._counter.grown(gpu.energy, at)
        self.estimated = self._counter.at is None and (self.estimated or gpu.power_draw is not None)
        if self._counter.at == read:
            return [], None
        if growth is not None:
            by_power = self._powered and self._by_power.total > 0
            charged = self._charged(self._by_power if by_power else self._by_time, growth[0])
            return charged, growth[0] / (at - growth[1])
        powered = self._powered
        charged = self._charged(self._by_power)
        return charged if read is None and powered else [], None

    def rest(self) -> list[tuple[Tally, float]]:
        """Return joules since the last reading of the counter, from power alone."""
        return [] if self._counter.at is None else self._by_power.take()

    def forget(self, window: Tally) -> None:
        """Drop a window that nobody reads any more."""
        self._by_time.forget(window)
        self._by_power.forget(window)

    def _charged(self, shares: Shares, joules: float | None = None) -> list[tuple[Tally, float]]:
        """Return what each window has of some energy, by default of what its weights are themselves, and start again."""
        total = shares.total or 1.0
        charged = shares.take()
        self._by_time, self._by_power, self._powered = Shares(), Shares(), True
        return charged if joules is None else [(window, joules * weight / total) for window, weight in charged]


_JOULES = 3.6e6  # of a kWh


class Cost:
    """What GPU time and energy cost, in the tariff's currency; None where a price or a figure is missing.

    `gpu_time` and `energy` add up to `total`; `idle` is the part of it that was spent while GPUs did nothing. `carbon` is in
    grams of CO2e. `estimated` if the energy comes from power samples instead of a counter.
    """

    __slots__ = ("carbon", "currency", "energy", "estimated", "gpu_hours", "gpu_time", "idle", "joules")

    def __init__(
        self,
        tariff: Tariff,
        gpu_hours: float,
        joules: float | None,
        idle_hours: float | None,
        idle_joules: float | None,
        estimated: bool = False,
    ) -> None:
        self.currency = tariff.currency
        self.gpu_hours = gpu_hours
        self.joules = joules
        self.estimated = estimated
        self.gpu_time = _product(tariff.gpu_price, gpu_hours)
        self.energy = _product(tariff.price, joules, _JOULES)
        self.carbon = _product(tariff.carbon, joules, _JOULES)
        self.idle = sum_known((_product(tariff.gpu_price, idle_hours), _product(tariff.price, idle_joules, _JOULES)))

    @property
    def total(self) -> float | None:
        """GPU time and energy together; None if neither has a price."""
        return sum_known((self.gpu_time, self.energy))

    def to_plain(self) -> dict[str, Any]:
        """Return the cost as plain data."""
        names = ("total", "gpu_time", "energy", "idle", "carbon", "gpu_hours", "estimated")
        return {name: getattr(self, name) for name in names} | {"currency": self.currency or None}


def cost_of(summary: Summary, tariff: Tariff | None) -> Cost | None:
    """Return the cost of a run on all its GPUs; None without prices or GPUs."""
    if not tariff or not summary.gpus:
        return None
    hours = summary.seconds / 3600
    idle = sum_known(None if gpu.idle_share is None else hours * gpu.idle_share / 100 for gpu in summary.gpus)
    idle_joules = sum_known(gpu.idle_energy for gpu in summary.gpus)
    estimated = any(gpu.energy_estimated for gpu in summary.gpus)
    return Cost(tariff, hours * len(summary.gpus), summary.energy, idle, idle_joules, estimated)


def usage_cost(use: Usage, tariff: Tariff | None) -> Cost | None:
    """Return the cost of what somebody used, from the history; None without prices. Idle is the time a GPU was held, not busy."""
    if not tariff:
        return None
    idle = None if use.busy_hours is None else max(0.0, use.gpu_hours - use.busy_hours)
    return Cost(tariff, use.gpu_hours, use.energy, idle, None, estimated=True)


def _product(one: float | None, other: float | None, scale: float = 1.0) -> float | None:
    return None if one is None or other is None else one * other / scale


def sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
