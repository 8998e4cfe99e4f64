"""The activity of one GPU over time: counters say how much of a stretch was work, the driver's own samples say when."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from math import ceil

from .diagnosis.workload import BUSY_SM, BUSY_UTILIZATION
from .own_use import tells_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import TypeAlias

    from ..model.catalog import Gpu
    from ..model.stacks import Frames

    Times: TypeAlias = dict[Frames, list[float]]  # seconds waited and computed
    StackTime: TypeAlias = tuple[float, float, float, Frames]  # time, share of waiting, seconds, stack


# The driver's own samples: seconds between two, and for how long one that was there is waited for.
_TRACES = (("power_trace", 0.02, 3.0), ("utilization_trace", 0.2, 16.0))
_NEARLY = 0.1  # seconds by which the newest of them may be older than the sample that brings it
_GRID = 0.01  # seconds between two moments of which power is told; the driver samples it 0.4 to 46 ms apart
# Seconds by which power follows the work: on an H200 it is half-way up 10 ms after the start of work, and down 12 ms after its end.
LAGS = (-0.005, 0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04)
_FINE = 0.1  # seconds between two values below which they tell the moments of a stretch apart
_LEVEL = 0.04  # of the range of power within which two moments are alike
_LONG = 0.25  # seconds from which a stack stands for the time since the one before rather than for its moment


class GpuTime:
    """One GPU: what its counters and the driver's own samples say about the time that is not yet counted, and the seconds counted."""

    def __init__(self) -> None:
        self.waited = self.computed = 0.0
        self._used = self._working = False
        self._since: float | None = None  # up to when activity is known
        self._known: list[tuple[float, float, float]] = []  # start, end and share of work of stretches not yet counted
        self._slots: dict[str, list[tuple[float, float]]] = {}  # end and value of the driver's samples
        self._traced: dict[str, float] = {}  # the time of the newest of the driver's samples
        self._newest: tuple[float, float] | None = None  # of power
        self._counted: Times = {}
        self._ending: Times = {}  # since the last work: counts once work goes on
        self._idle = 0.0

    def add(self, time: float, gpu: Gpu, own: Collection[int] | None, epoch: float) -> None:
        """Take a sample; `epoch` is the time since 1970 at which the clock of `time` began."""
        work = work_share(gpu)
        self._used = self._used or _is_used(gpu, own, work)
        for key, step, _ in _TRACES:
            if values := getattr(gpu, key):
                stamps = getattr(gpu, f"{key}_times", None) or ()
                first = time - step * (len(values) - 1)
                points = [
                    (stamps[at] - epoch if len(stamps) == len(values) else first + step * at, value)
                    for at, value in enumerate(values)
                ]
                self._slots.setdefault(key, []).extend(self._between(points) if step < _FINE else points)
                self._traced[key] = points[-1][0]
        if work is None:
            return
        if self._since is not None and self._used and time > self._since:
            self._known.append((self._since, time, work))
        self._since = time

    def _between(self, points: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
        """Yield power at even moments, between samples that are not evenly apart."""
        if self._newest and points[0][0] - self._newest[0] < _FINE:
            points = [self._newest, *points]
        self._newest = points[-1]
        for (start, low), (end, high) in pairwise(points):
            for at in range(ceil(start / _GRID), ceil(end / _GRID)):
                yield at * _GRID, low + (high - low) * (at * _GRID - start) / (end - start)

    def next(self, last: bool = False) -> Stretch | None:
        """Return the next stretch of which everything is known that will be; the `last` one may end with the newest sample."""
        if not self._known:
            return None
        start, end = self._known[0][0], self._known[-1][1]
        for key, step, patience in _TRACES:
            at = self._traced.get(key)
            if at is None or end - at > patience:
                continue
            step, lag = (_GRID, LAGS[-1]) if step < _FINE else (step, 0.0)
            latest = at + _NEARLY if last else at - lag
            until = max((end for _, end, _ in self._known if end <= latest), default=start)
            if until <= start:
                return None  # its samples come with one of the next readings
            slots = self._slots[key]
            within = [slot for slot in slots if start - step < slot[0] <= until + lag]
            self._slots = {key: [slot for slot in slots if slot[0] > until]}
            return self._stretch(until, within if len(within) * step >= 0.5 * (until - start) else [], step)
        self._slots = {}
        return self._stretch(end, [], 0.0)

    def _stretch(self, until: float, slots: list[tuple[float, float]], step: float) -> Stretch:
        inside = [(a, min(b, until), work) for a, b, work in self._known if a < until]
        self._known = [(max(a, until), b, work) for a, b, work in self._known if b > until]
        seconds = sum(b - a for a, b, _ in inside)
        work = sum((b - a) * work for a, b, work in inside) / seconds
        return Stretch(inside[0][0], until, 1.0 - work, slots, step)

    def count(self, stretch: Stretch, moments: Sequence[StackTime]) -> None:
        """Add the time of a stretch and of its moments: time, share of waiting, seconds and stack."""
        first, last = stretch.working or (stretch.end, stretch.end if self._working else stretch.start)
        starts = stretch.working is not None and not self._working
        if stretch.working is not None:
            self._merge()  # before the moments after its last work, which may be the program's end
        for time, wait, seconds, frames in moments:
            if time <= first and not self._working:
                continue
            into = self._counted if stretch.working is not None and time <= last else self._ending
            add_times(into, frames, seconds * wait, seconds * (1.0 - wait))
        if stretch.working is None:
            self._idle += stretch.seconds if self._working else 0.0
            return
        before = first - stretch.start if starts else 0.0
        waited = max(0.0, stretch.seconds * stretch.wait - before - (stretch.end - last))
        self.computed += stretch.seconds * (1.0 - stretch.wait)
        self.waited += waited + self._idle
        self._idle = max(0.0, stretch.end - last)
        self._working = True

    def _merge(self) -> None:
        for frames, times in self._ending.items():
            add_times(self._counted, frames, *times)
        self._ending = {}

    def take(self) -> Times:
        """Return what has been counted since the last call."""
        counted, self._counted = self._counted, {}
        return counted


def add_times(into: Times, frames: Frames, waited: float, computed: float) -> None:
    """Add seconds to those of a stack."""
    known = into.setdefault(frames, [0.0, 0.0])
    known[0] += waited
    known[1] += computed


class Stretch:
    """Some seconds of one GPU: the share of them without work, and how that is spread over their moments."""

    def __init__(
        self, start: float, end: float, wait: float, slots: Sequence[tuple[float, float]], step: float
    ) -> None:
        self.start = start
        self.end = end
        self.wait = wait
        self._ends = [time for time, _ in slots]
        self._step = step
        self.fine = bool(slots) and step < _FINE
        self._shares = wait_shares([value for _, value in slots], wait, self.fine)

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

    @property
    def working(self) -> tuple[float, float] | None:
        """From when until when the GPU worked; None if it did not."""
        if 100.0 * (1.0 - self.wait) < BUSY_SM:
            return None
        busy = [end for end, share in zip(self._ends, self._shares, strict=True) if share < 0.5]
        return (max(self.start, busy[0] - self._step), min(self.end, busy[-1])) if busy else (self.start, self.end)

    def slot(self, time: float) -> int:
        """Return what moments share one value: each its own of a coarse counter, all of the stretch where power tells them apart."""
        return -1 if self.fine else self._place(time)

    def _place(self, time: float) -> int:
        # power is that of a moment, utilization that of the time before
        return min(len(self._ends) - 1, bisect_left(self._ends, time - (0.5 * self._step if self.fine else 0.0)))

    def wait_at(self, time: float, seconds: float) -> float:
        """Return the share (0–1) of a moment, or of the `seconds` before it where they are many, in which the GPU waited."""
        if not self._ends:
            return self.wait
        last = self._place(time)
        if seconds < _LONG:
            return self._shares[last]
        shares = self._shares[bisect_left(self._ends, time - seconds) : last + 1]
        return sum(shares) / len(shares) if shares else self._shares[last]


def wait_shares(values: Sequence[float], wait: float, fine: bool = True) -> list[float]:
    """Spread a share of waiting (0–1) over moments with these values: those with the lowest wait first, those alike evenly.

    All power in the upper half of its range is alike: it is that of work, which leaves some of the SMs without any.
    """
    if not values:
        return []
    low, span = min(values), max(values) - min(values)
    # power varies by itself, utilization does not
    width = max(_LEVEL * span, 6.0) if fine else 1.0
    highest = int(0.5 * span / width) if fine else 100
    levels: dict[int, list[int]] = {}
    for at, value in enumerate(values):
        levels.setdefault(min(highest, int((value - low) / width)), []).append(at)
    shares = [0.0] * len(values)
    left = wait * len(values)
    for level in sorted(levels):
        places = levels[level]
        share = min(1.0, max(0.0, left / len(places)))
        left -= share * len(places)
        for at in places:
            shares[at] = share
    return shares


def work_share(gpu: Gpu) -> float | None:
    """Return the share (0–1) of the time of a sample that was work, as in a time budget; None where this sample does not tell."""
    if gpu.sm_active is not None:
        return min(1.0, gpu.sm_active / 100.0)
    if gpu.gaps.get("sm_active") in ("skipped", "pending") or gpu.utilization is None:
        return None
    return min(1.0, gpu.utilization / 100.0)


def _is_used(gpu: Gpu, own: Collection[int] | None, work: float | None) -> bool:
    if own is not None and tells_processes(gpu):
        return any(int(process.pid or 0) in own for process in gpu.all_processes())
    return work is not None and 100.0 * work >= BUSY_UTILIZATION
