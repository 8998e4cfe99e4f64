"""Totals of measurements by name, and the table of all names."""

from __future__ import annotations

import threading

from ..analysis.energy import TELLING
from ..analysis.summary import WeightedSeries
from ..present.cells import energy_text, quantity_text, seconds_text
from ..present.program import is_shared
from ..present.text import aligned, clean
from .ledger import OTHERS
from .measurement import Measurement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


_MOST_NAMES = 1000  # beyond, further names are counted together


class Total:
    """All calls of one name: their number, failures, seconds, peak memory, energy.

    `memory_peak` and `energy`, in joules and of all calls, are this program's share, or that of all processes where they cannot be
    told apart; `energy` is None while the calls last less than one second together. Calls shorter than one second are charged at the
    mean power of the surrounding seconds.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.failed = 0
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.memory_peak: float | None = None
        self.torch_peak: float | None = None
        self._times = WeightedSeries()
        self._use = WeightedSeries()
        self._sm = WeightedSeries()
        self._joules: float | None = None
        self._charged = 0.0
        self._uncharged = 0.0

    @property
    def mean(self) -> float:
        """Mean duration of a call in seconds."""
        return self.seconds / self.calls if self.calls else 0.0

    @property
    def max(self) -> float:
        """Duration of the longest call in seconds."""
        return max(0.0, self._times.highest)

    def percentile(self, percent: float) -> float | None:
        """Return this quantile of the durations in seconds."""
        return self._times.percentile(percent)

    @property
    def utilization(self) -> float | None:
        """Mean utilization in percent, of calls long enough to measure it."""
        return self._use.mean

    @property
    def sm_active(self) -> float | None:
        """Mean SM activity in percent, of calls long enough to measure it."""
        return self._sm.mean

    @property
    def energy(self) -> float | None:
        """Energy of all calls together in joules."""
        return self._joules if self._charged >= TELLING else None

    def add(self, measurement: Measurement) -> None:
        """Count a call."""
        self.calls += 1
        self.failed += measurement.failed
        self.seconds += measurement.seconds
        self.cpu_seconds += measurement.cpu_seconds
        self._times.add(measurement.seconds, 1.0)
        if measurement.torch_peak_limit is not None:
            self.torch_peak = max(self.torch_peak or 0.0, measurement.torch_peak or 0.0) or None
        if measurement.elapsed < TELLING:
            self._uncharged += measurement.elapsed

    def complete(self, measurement: Measurement) -> None:
        """Add the GPU values of a call."""
        if (peak := measurement.memory_peak) is not None:
            self.memory_peak = max(self.memory_peak or 0.0, peak)
        shared = any(map(is_shared, measurement.gpus))  # then what the GPU did is not what the call did
        for series, stats in ((self._use, measurement.utilization), (self._sm, measurement.sm_active)):
            if stats is not None and not shared:
                series.add(stats.mean, measurement.elapsed)
        if (energy := measurement.energy) is not None:
            self._charge(energy, measurement.elapsed)

    def charge(self, watts: float) -> None:
        """Charge the short calls since the previous time at this power."""
        if self._uncharged > 0:
            self._charge(watts * self._uncharged, self._uncharged)
            self._uncharged = 0.0

    def _charge(self, joules: float, seconds: float) -> None:
        self._joules = (self._joules or 0.0) + joules
        self._charged += seconds

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        names = ("name", "calls", "failed", "seconds", "mean", "max", "cpu_seconds", "memory_peak", "torch_peak",
                 "utilization", "sm_active", "energy")  # fmt: skip
        plain = {name: getattr(self, name) for name in names}
        return plain | {"p50": self.percentile(50), "p95": self.percentile(95)}


class Measurements:
    """Totals by name, in order of first use; thread-safe. `str()` gives a table. Beyond 1000 names, further ones are counted together."""

    def __init__(self) -> None:
        self._totals: dict[str, Total] = {}
        self._lock = threading.RLock()

    def add(self, measurement: Measurement) -> None:
        """Count a call now, and add its GPU values once they are known."""
        with self._lock:
            name = self._name(measurement)
            if name not in self._totals:
                self._totals[name] = Total(name)
            self._totals[name].add(measurement)

    def complete(self, measurement: Measurement) -> None:
        """Add the GPU values of a counted call."""
        with self._lock:
            if (total := self._totals.get(self._name(measurement))) is not None:
                total.complete(measurement)

    def _name(self, measurement: Measurement) -> str:
        known = measurement.name in self._totals or len(self._totals) < _MOST_NAMES
        return measurement.name if known else OTHERS

    def charge(self, watts: float) -> None:
        """Charge short calls at this power, the mean of the last seconds."""
        with self._lock:
            for total in self._totals.values():
                total.charge(watts)

    def start_over(self) -> None:
        """Forget the parent's totals in a forked child, and its lock, which a thread that does not exist here may hold."""
        self._lock = threading.RLock()
        self._totals = {}

    def clear(self) -> None:
        """Clear all totals."""
        with self._lock:
            self._totals.clear()

    def __getitem__(self, name: str) -> Total:
        return self._totals[name]

    def __contains__(self, name: object) -> bool:
        return name in self._totals

    def __iter__(self) -> Iterator[Total]:
        return iter([*self._totals.values()])

    def __len__(self) -> int:
        return len(self._totals)

    def __str__(self) -> str:
        header = ("name", "calls", "total", "mean", "p50", "p95", "max", "GPU mem", "util", "SM", "energy", "per call")
        return "\n".join(aligned([header, *(_row(total) for total in self)]))


def _row(total: Total) -> tuple[str, ...]:
    times = total.seconds, total.mean, total.percentile(50) or 0.0, total.percentile(95) or 0.0, total.max
    shares = total.utilization, total.sm_active
    energies = total.energy, None if total.energy is None else total.energy / total.calls
    return (
        *(clean(total.name), f"{total.calls}", *map(seconds_text, times), quantity_text("B", total.memory_peak)),
        *(*(quantity_text("%", share) for share in shares), *map(energy_text, energies)),
    )
