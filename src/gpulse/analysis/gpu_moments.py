"""The activity of one GPU moment by moment: counters say how much of a stretch was work, the driver's own samples say when."""

from __future__ import annotations

from bisect import bisect_left

from .diagnosis.workload import BUSY_SM, BUSY_UTILIZATION
from .own_use import tells_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TypeAlias

    from ..model.catalog import Gpu
    from ..model.stacks import Frames

    Times: TypeAlias = dict[Frames, list[float]]  # seconds waited and computed
    Moment: TypeAlias = tuple[float, float, float, Frames]  # time, share of waiting, seconds, stack

# The driver's own samples: seconds between two, and for how long one that was there is waited for.
_TRACES = (("power_trace", 0.02, 3.0), ("utilization_trace", 0.2, 16.0))
# Seconds by which power may seem to follow the work: it rises and falls within 40 ms, and is read up to 40 ms after the time of a sample.
LAGS = (-0.04, -0.02, 0.0, 0.02, 0.04, 0.06)
_FINE = 0.1  # seconds between two values below which they tell the moments of a stretch apart
_LEVEL = 0.04  # of the range of power within which two moments are alike
_LONG = 0.25  # seconds from which a stack stands for the time since the one before rather than for its moment


class GpuTime:
    """One GPU: what its counters and the driver's own samples tell of the time that is not yet counted, and the seconds counted."""

    def __init__(self) -> None:
        self.waited = self.computed = 0.0
        self._used = self._working = False
        self._since: float | None = None  # up to when activity is known
        self._known: list[tuple[float, float, float]] = []  # start, end and share of work of stretches not yet counted
        self._slots: dict[str, list[tuple[float, float]]] = {}  # end and value of the driver's samples
        self._traced: dict[str, float] = {}  # when the driver's samples were last read
        self._counted: Times = {}
        self._ending: Times = {}  # since the last work: counts once work goes on
        self._idle = 0.0

    def add(self, time: float, gpu: Gpu, own: Collection[int] | None) -> None:
        """Take a sample."""
        work = work_share(gpu)
        self._used = self._used or _is_used(gpu, own, work)
        for key, step, _ in _TRACES:
            if values := getattr(gpu, key):
                first = time - step * (len(values) - 1)
                slots = self._slots.setdefault(key, [])
                slots += [(first + step * at, value) for at, value in enumerate(values)]
                self._traced[key] = time
        if work is None:
            return
        if self._since is not None and self._used and time > self._since:
            self._known.append((self._since, time, work))
        self._since = time

    def next(self) -> Stretch | None:
        """Return the next stretch of which everything is known that will be."""
        if not self._known:
            return None
        start, end = self._known[0][0], self._known[-1][1]
        for key, step, patience in _TRACES:
            at = self._traced.get(key)
            if at is None or end - at > patience:
                continue
            until = min(end, at - (LAGS[-1] if step < _FINE else 0.0))
            if until <= start:
                return None  # its samples come with one of the next readings
            slots = self._slots[key]
            within = [slot for slot in slots if start - step < slot[0] <= until + LAGS[-1]]
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

    def count(self, stretch: Stretch, moments: Sequence[Moment]) -> None:
        """Add the time of a stretch and of its moments: time, share of waiting, seconds and stack."""
        first, last = stretch.working or (stretch.end, stretch.end if self._working else stretch.start)
        starts = stretch.working is not None and not self._working
        for time, wait, seconds, frames in moments:
            if time <= first and not self._working:
                continue
            into = self._counted if stretch.working is not None and time <= last else self._ending
            known = into.setdefault(frames, [0.0, 0.0])
            known[0] += seconds * wait
            known[1] += seconds * (1.0 - wait)
        if stretch.working is None:
            self._idle += stretch.seconds if self._working else 0.0
            return
        self._merge()
        before = first - stretch.start if starts else 0.0
        waited = max(0.0, stretch.seconds * stretch.wait - before - (stretch.end - last))
        self.computed += stretch.seconds * (1.0 - stretch.wait)
        self.waited += waited + self._idle
        self._idle = max(0.0, stretch.end - last)
        self._working = True

    def _merge(self) -> None:
        for frames, times in self._ending.items():
            known = self._counted.setdefault(frames, [0.0, 0.0])
            known[0] += times[0]
            known[1] += times[1]
        self._ending = {}

    def take(self) -> Times:
        """Return what has been counted since the last call."""
        counted, self._counted = self._counted, {}
        return counted


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
    """Spread a share of waiting (0–1) over moments with these values: those with the lowest wait first, those alike evenly."""
    if not values:
        return []
    low, span = min(values), max(values) - min(values)
    # power varies by itself, utilization does not
    width = max(_LEVEL * span, 6.0) if fine else 1.0
    levels: dict[int, list[int]] = {}
    for at, value in enumerate(values):
        levels.setdefault(int((value - low) / width), []).append(at)
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
