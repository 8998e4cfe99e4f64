"""Cost: GPU time and energy at the user's prices, idle time separately, and carbon from the user's factor."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..model.serving import Tariff
    from ..store.history import Usage
    from .summary import Summary

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
