"""Trace: the driver's own samples of the utilization over a window."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .window import Column, Row

TRACE_STEP = 0.2  # seconds between two values of utilization_trace
_COVERED = 0.6  # of a sample's time that a trace must cover to be its utilization


class Trace:
    """The driver's own samples of the utilization, one per 0.2 s, stitched together; empty where it has none."""

    __slots__ = ("times", "values")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.times: list[float] = []
        self.values: list[float] = []
        for row in rows:
            if row.trace:
                first = row.time - TRACE_STEP * (len(row.trace) - 1)
                times = [first + TRACE_STEP * at for at in range(len(row.trace))]
                new = bisect_right(times, self.times[-1] + 0.5 * TRACE_STEP) if self.times else 0
                self.times += times[new:]
                self.values += row.trace[new:]

    def means(self, times: Sequence[float], weights: Sequence[float], read: Column) -> list[float | None]:
        """Return the mean utilization over the time of each sample; what was `read` at the sample where the trace has holes."""
        found: list[float | None] = []
        for time, weight, known in zip(times, weights, read, strict=True):
            place = bisect_right(self.times, time - weight + 0.5 * TRACE_STEP)
            end = bisect_right(self.times, time + 0.5 * TRACE_STEP)
            covered = (end - place) * TRACE_STEP
            short = end <= place or covered < _COVERED * weight
            found.append(known if short else sum(self.values[place:end]) / (end - place))
        return found

    def between(self, start: float, end: float) -> list[tuple[float, float]]:
        """Return the times and values from `start` to `end`."""
        first, last = bisect_right(self.times, start), bisect_right(self.times, end)
        return list(zip(self.times[first:last], self.values[first:last], strict=True))
