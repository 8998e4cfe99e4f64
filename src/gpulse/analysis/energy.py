"""Counters of energy and CPU time, shared out among the windows that were open meanwhile; and what GPU time and energy cost."""

from __future__ import annotations

from ..model.cadence import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ..model.catalog import Gpu, Process
    from .own_use import EnergyShare
    from .tally import Tally

    # a window or phase by its tally, with its seconds of one interval between samples
    Parts: TypeAlias = Sequence[tuple[Tally, float]]
    from typing import Any

    from ..model.serving import Tariff
    from ..store.history import Usage
    from .summary import Summary

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


_COUNTERS = {"cpu_percent": "cpu_time", "tree_cpu_percent": "tree_cpu_time"}


class CpuMeter:
    """The counters of one program. A rate of the last seconds says nothing about the next ones, so means come from these."""

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        self._counters = {key: Growth() for key in _COUNTERS}

    @property
    def keys(self) -> tuple[str, ...]:
        """The metrics whose means are known from these counters."""
        return tuple(_COUNTERS)

    def read_at(self, key: str) -> float | None:
        """Return when the counter of this metric was last read; None before the first reading."""
        return self._counters[key].at

    def add(self, program: Process | None, at: float) -> Iterator[tuple[str, float, float]]:
        """Yield the keys whose counters were read, with the CPU seconds since the previous reading and the time of that one."""
        if program is None:
            return
        for key, counter in self._counters.items():
            value = program.get(_COUNTERS[key])
            growth = counter.since(value if isinstance(value, (int, float)) else None, at)
            if growth is not None:
                yield key, *growth


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
        self.idle = _sum((_product(tariff.gpu_price, idle_hours), _product(tariff.price, idle_joules, _JOULES)))

    @property
    def total(self) -> float | None:
        """GPU time and energy together; None if neither has a price."""
        return _sum((self.gpu_time, self.energy))

    def to_plain(self) -> dict[str, Any]:
        """Return the cost as plain data."""
        names = ("total", "gpu_time", "energy", "idle", "carbon", "gpu_hours", "estimated")
        return {name: getattr(self, name) for name in names} | {"currency": self.currency or None}


def cost_of(summary: Summary, tariff: Tariff | None) -> Cost | None:
    """Return the cost of a run on all its GPUs; None without prices or GPUs."""
    if not tariff or not summary.gpus:
        return None
    hours = summary.seconds / 3600
    idle = _sum(None if gpu.idle_share is None else hours * gpu.idle_share / 100 for gpu in summary.gpus)
    idle_joules = _sum(gpu.idle_energy for gpu in summary.gpus)
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


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
