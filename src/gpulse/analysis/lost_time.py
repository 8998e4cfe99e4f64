"""Lost time: stacks of a program joined with what its GPUs did at that very moment, added up.

The GPU comes first: its counters say how much of a stretch was work, as in a time budget. Power, which the driver itself samples
every 20 ms, says when in the stretch that was: the share without work belongs to the moments with the least power. Where the driver
has no such samples, its utilization per 0.2 s does the same, else every moment of a sample counts alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from functools import lru_cache

from .diagnosis.workload import BUSY_SM, BUSY_UTILIZATION
from .own_lines import LOADS, feeds_gpu, library_of, own_line, waits_for_gpu, worker_frames
from .own_use import tells_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import TypeAlias

    from ..model.catalog import Gpu
    from ..model.stacks import Frame, Stack

    Frames: TypeAlias = tuple[Frame, ...]
    Times: TypeAlias = dict[Frames, list[float]]  # seconds waited and computed
    Moment: TypeAlias = tuple[float, float, float, Frames]  # time, share of waiting, seconds, stack
    TimedStack: TypeAlias = tuple[Frames, float, float]

# The driver's own samples: seconds between two, for how long one that was there is waited for, and by how much it follows the work.
_TRACES = (("power_trace", 0.02, 3.0, 0.02), ("utilization_trace", 0.2, 16.0, 0.0))
_KEPT = 20.0  # seconds for which stacks wait for the activity of their moment
_LEVEL = 0.04  # of the range of power within which two moments are alike
_LONG = 0.25  # seconds from which a stack stands for the time since the one before rather than for its moment
_MOST = 20_000  # different stacks that are kept whole
_TOGETHER = 0.25  # seconds within which stacks of workers belong to that of the thread that waits for them
_LEARNED = 3.0  # seconds at a line from which what was seen of it counts more than what kind of line it is
_EXTRAPOLATED = 1.25  # by how much the seconds of stacks may be stretched to those that the counters tell


class CodeTally:
    """Adds up, in bounded memory, for how long the GPUs of a program waited and computed at each of its stacks. For one thread.

    Only the time from the first to the last work counts: what comes before is the program's start, what comes after its end.
    """

    def __init__(self) -> None:
        self._stacks: deque[Stack] = deque()
        self._workers: deque[Stack] = deque()
        self._feeder = _Feeder()
        self._gpus: dict[str, _GpuTime] = {}
        self._times: Times = {}
        self._lines = _LineShares()

    def add_stacks(self, stacks: Iterable[Stack]) -> None:
        """Take the stacks of all threads, and of workers, at one moment; the one that feeds the GPU counts."""
        threads = []
        for stack in stacks:
            if stack.role == "worker":
                self._workers.append(stack)
            else:
                threads.append(stack)
        chosen = self._feeder.choose(threads)
        if chosen is not None:
            self._stacks.append(chosen)
        for kept in (self._stacks, self._workers):
            while kept and kept[0].time < kept[-1].time - _KEPT:
                kept.popleft()

    def add_sample(self, time: float, gpus: Iterable[Gpu], own: Collection[int] | None = None) -> None:
        """Take a sample of GPUs at `time` of the stacks' clock; where `own` tells the program's processes, only its GPUs count."""
        for gpu in gpus:
            known = self._gpus.setdefault(gpu.uuid or f"{gpu.index}", _GpuTime())
            known.add(time, gpu, own)
            while (stretch := known.next()) is not None:
                known.count(stretch, self._moments(stretch))
                for frames, times in known.take().items():
                    self._put(frames, times)

    def _moments(self, stretch: _Stretch) -> list[Moment]:
        """Return the moments of a stretch: time, share of waiting, seconds and stack."""
        slots: dict[int, list[Moment]] = {}
        for stack in self._stacks:
            if stretch.start < stack.time <= stretch.end:
                wait = stretch.wait_at(stack.time, stack.seconds)
                slots.setdefault(stretch.slot(stack.time), []).extend(
                    (stack.time, wait, stack.seconds * part, frames) for frames, part in self._blamed(stack)
                )
        return [moment for slot in slots.values() for moment in self._lines.divided(slot, stretch.wait)]

    @property
    def waited(self) -> float:
        """Seconds of GPU time in which the GPUs waited, as their counters tell."""
        return sum(gpu.waited for gpu in self._gpus.values())

    @property
    def computed(self) -> float:
        """Seconds of GPU time in which the GPUs computed, as their counters tell."""
        return sum(gpu.computed for gpu in self._gpus.values())

    @property
    def gpus(self) -> int:
        """Number of GPUs that the program used."""
        return sum(gpu.waited + gpu.computed > 0 for gpu in self._gpus.values())

    def stacks(self) -> list[TimedStack]:
        """Return every stack with the seconds in which the GPUs waited and computed, which add up to what the counters tell."""
        waited = _scale(self.waited, sum(times[0] for times in self._times.values()))
        computed = _scale(self.computed, sum(times[1] for times in self._times.values()))
        return [(frames, waited * times[0], computed * times[1]) for frames, times in self._times.items()]

    def _blamed(self, stack: Stack) -> list[tuple[Frames, float]]:
        """Return the stacks that a moment counts for: those of the workers at work, where the thread waits for them."""
        line = own_line(stack.frames) if self._workers else None
        if line is None or line.call not in LOADS:
            return [(stack.frames, 1.0)]
        near = [one for one in self._workers if abs(one.time - stack.time) <= _TOGETHER]
        inner = {one.pid: worker_frames(one.frames) for one in near}
        found = [frames for frames in inner.values() if any(library_of(frame.file) is None for frame in frames)]
        return [((*stack.frames, *frames), 1.0 / len(found)) for frames in found] or [(stack.frames, 1.0)]

    def _put(self, frames: Frames, times: Sequence[float]) -> None:
        if frames not in self._times and len(self._times) >= _MOST:
            line = own_line(frames)
            frames = () if line is None else line.path
        known = self._times.setdefault(frames, [0.0, 0.0])
        known[0] += times[0]
        known[1] += times[1]


class _Feeder:
    """Tells which thread gives work to the GPU: the main thread, unless only others are ever seen in libraries that do."""

    def __init__(self) -> None:
        self._main = False
        self._seen: dict[str, int] = {}

    def choose(self, threads: Sequence[Stack]) -> Stack | None:
        """Return the stack that counts, of those of one moment."""
        main = next((stack for stack in threads if stack.role == "main"), None)
        if main is not None and not self._main:
            self._main = feeds_gpu(main.frames)
        if self._main or (main is None and not threads):
            return main
        for stack in threads:
            if stack.role == "thread" and feeds_gpu(stack.frames):
                self._seen[stack.thread] = self._seen.get(stack.thread, 0) + 1
        others = [stack for stack in threads if self._seen.get(stack.thread)]
        return max(others, key=lambda stack: self._seen[stack.thread]) if others else main


class _LineShares:
    """What share of the time at each line the GPU waited so far, to tell apart lines that share one value of a coarse counter."""

    def __init__(self) -> None:
        self._seconds: dict[Frames, tuple[float, float]] = {}  # waited and all, by the user's frames

    def divided(self, moments: list[Moment], usual: float) -> list[Moment]:
        """Divide the waits of moments with one value so that lines at which the GPU usually waits have most of them."""
        if len(moments) > 1:
            moments = self._divided(moments, usual)
        for _, wait, seconds, frames in moments:
            name = _expected(frames)[0]
            waited, total = self._seconds.get(name, (0.0, 0.0))
            self._seconds[name] = waited + wait * seconds, total + seconds
            if len(self._seconds) > _MOST:
                self._seconds.clear()
        return moments

    def _divided(self, moments: list[Moment], usual: float) -> list[Moment]:
        left = sum(wait * seconds for _, wait, seconds, _ in moments)
        waits = [0.0] * len(moments)
        weights = [seconds * self._share(frames, usual) for _, _, seconds, frames in moments]
        for _ in range(4):  # a moment waits at most all of its time: what exceeds it goes to the others
            rest = [weight if wait < 1.0 else 0.0 for weight, wait in zip(weights, waits, strict=True)]
            total = sum(rest)
            if left <= 0 or total <= 0:
                break
            for at, (_, _, seconds, _) in enumerate(moments):
                waits[at] = min(1.0, waits[at] + left * rest[at] / total / seconds)
            left = sum(one[1] * one[2] for one in moments) - sum(
                w * one[2] for w, one in zip(waits, moments, strict=True)
            )
        return [(time, wait, seconds, frames) for wait, (time, _, seconds, frames) in zip(waits, moments, strict=True)]

    def _share(self, frames: Frames, usual: float) -> float:
        name, likely = _expected(frames)
        waited, total = self._seconds.get(name, (0.0, 0.0))
        return max(0.01, (waited + _LEARNED * likely * usual) / (total + _LEARNED))


@lru_cache(maxsize=4096)
def _expected(frames: Frames) -> tuple[Frames, float]:
    """Return the user's frames of a stack, and how likely the GPU waits there before anything is known, relative to other code."""
    line = own_line(frames)
    if line is None:
        return (), 1.0
    return line.path, 0.25 if waits_for_gpu(line.call) else 0.5 if line.launching else 1.0


class _GpuTime:
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
        for key, step, _, lag in _TRACES:
            if values := getattr(gpu, key):
                first = time - step * (len(values) - 1) - lag
                slots = self._slots.setdefault(key, [])
                slots += [(first + step * at, value) for at, value in enumerate(values)]
                self._traced[key] = time
        if work is None:
            return
        if self._since is not None and self._used and time > self._since:
            self._known.append((self._since, time, work))
        self._since = time

    def next(self) -> _Stretch | None:
        """Return the next stretch of which everything is known that will be."""
        if not self._known:
            return None
        start, end = self._known[0][0], self._known[-1][1]
        for key, step, patience, _ in _TRACES:
            at = self._traced.get(key)
            if at is None or end - at > patience:
                continue
            until = min(end, at)
            if until <= start:
                return None  # its samples come with one of the next readings
            slots = self._slots[key]
            within = [slot for slot in slots if start < slot[0] <= until + step]
            self._slots = {key: [slot for slot in slots if slot[0] > until]}
            return self._stretch(until, within if len(within) * step >= 0.5 * (until - start) else [], step)
        self._slots = {}
        return self._stretch(end, [], 0.0)

    def _stretch(self, until: float, slots: list[tuple[float, float]], step: float) -> _Stretch:
        inside = [(a, min(b, until), work) for a, b, work in self._known if a < until]
        self._known = [(max(a, until), b, work) for a, b, work in self._known if b > until]
        seconds = sum(b - a for a, b, _ in inside)
        work = sum((b - a) * work for a, b, work in inside) / seconds
        return _Stretch(inside[0][0], until, 1.0 - work, slots, step)

    def count(self, stretch: _Stretch, moments: Sequence[Moment]) -> None:
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


class _Stretch:
    """Some seconds of one GPU: the share of them without work, and how that is spread over their moments."""

    def __init__(
        self, start: float, end: float, wait: float, slots: Sequence[tuple[float, float]], step: float
    ) -> None:
        self.start = start
        self.end = end
        self.wait = wait
        self._ends = [time for time, _ in slots]
        self._step = step
        self._shares = wait_shares([value for _, value in slots], wait, falls=step < 0.1)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def working(self) -> tuple[float, float] | None:
        """From when until when the GPU worked; None if it did not."""
        if 100.0 * (1.0 - self.wait) < BUSY_SM:
            return None
        busy = [end for end, share in zip(self._ends, self._shares, strict=True) if share < 0.5]
        return (max(self.start, busy[0] - self._step), min(self.end, busy[-1])) if busy else (self.start, self.end)

    def slot(self, time: float) -> int:
        """Return the number of the value that tells of a moment."""
        return min(len(self._ends) - 1, bisect_left(self._ends, time))

    def wait_at(self, time: float, seconds: float) -> float:
        """Return the share (0–1) of a moment, or of the `seconds` before it where they are many, in which the GPU waited."""
        if not self._ends:
            return self.wait
        last = self.slot(time)
        if seconds < _LONG:
            return self._shares[last]
        shares = self._shares[bisect_left(self._ends, time - seconds) : last + 1]
        return sum(shares) / len(shares) if shares else self._shares[last]


def wait_shares(values: Sequence[float], wait: float, falls: bool = True) -> list[float]:
    """Spread a share of waiting (0–1) over moments with these values: those with the lowest wait first, those alike evenly."""
    if not values:
        return []
    low, span = min(values), max(values) - min(values)
    # power varies by itself, utilization does not
    width = max(_LEVEL * span, 6.0) if falls else 1.0
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


def _scale(wanted: float, seen: float) -> float:
    return min(_EXTRAPOLATED, max(1.0 / _EXTRAPOLATED, wanted / seen)) if seen > 0 else 1.0
