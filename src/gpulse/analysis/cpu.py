"""The CPU time of a program between two readings of its counters."""

from __future__ import annotations

from ..model.cadence import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.catalog import Process

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
