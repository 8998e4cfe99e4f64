"""Lost time: stacks of a program joined with what its GPUs did at that very moment, added up.

The GPU comes first: its counters say how much of a stretch was work, as in a time budget. Power, which the driver itself samples
every 20 ms, says when in the stretch that was: the share without work belongs to the moments with the least power. Where the driver
has no such samples, its utilization per 0.2 s does the same, else every moment of a sample counts alike.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache

from .gpu_activity import LAGS, GpuTime, Stretch, add_times
from .own_lines import LOADS, feeds_gpu, library_of, own_line, waits_for_gpu, worker_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ..model.catalog import Gpu
    from ..model.stacks import Frames, Stack, TimedStack
    from .gpu_activity import StackTime, Times


_USUAL = 3  # of the lags, until more is known
_TOLD_LAG, _LEARNED_LAG = 60, 3000  # stacks from which the lag is known, and after which it is no longer learned
_KEPT = 20.0  # seconds for which stacks wait for the activity of their moment
_MOST = 5000  # different stacks that are kept whole
_TOGETHER = 0.25  # seconds within which stacks of workers belong to that of the thread that waits for them
_UNSURE = 0.02  # the least share that a moment may have waited, whatever its value says
_LEARNED = 3.0  # seconds at a line from which what was seen of it counts more than what kind of line it is
_EXTRAPOLATED = 2.0


class CodeTally:
    """Adds up, in bounded memory, for how long the GPUs of a program waited and computed at each of its stacks. For one thread.

    Only the time from the first to the last work counts: what comes before is the program's start, what comes after its end.
    `stretch` is by how much the seconds of stacks may be stretched to those that the counters tell: more where there are pauses.
    """

    def __init__(self, stretch: float = _EXTRAPOLATED) -> None:
        self._stretch = stretch
        self._stacks: deque[Stack] = deque()
        self._workers: deque[Stack] = deque()
        self._feeder = _Feeder()
        self._gpus: dict[str, GpuTime] = {}
        self._times: Times = {}
        self._lines = _LineShares()
        self._lag = _Lag()
        self._open: list[tuple[GpuTime, Stretch, list[tuple[Stack, list[tuple[Frames, float]]]]]] = []

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

    def add_sample(
        self, time: float, gpus: Iterable[Gpu], own: Collection[int] | None = None, epoch: float = 0.0
    ) -> None:
        """Take a sample of GPUs at `time` of the stacks' clock, which began `epoch` seconds after 1970.

        Where `own` tells the program's processes, only its GPUs count.
        """
        for gpu in gpus:
            known = self._gpus.setdefault(gpu.uuid or f"{gpu.index}", GpuTime())
            known.add(time, gpu, own, epoch)
            self._join(known)
        if self.is_settled:
            self._count()

    def _join(self, gpu: GpuTime, last: bool = False) -> None:
        """Find the stacks of the stretches that are known."""
        while (stretch := gpu.next(last)) is not None:
            inside = [
                (stack, self._blamed(stack)) for stack in self._stacks if stretch.start < stack.time <= stretch.end
            ]
            if stretch.fine:
                self._lag.learn(stretch, [stack for stack, _ in inside])
            self._open.append((gpu, stretch, inside))

    def _count(self, last: bool = False) -> None:
        """Add up the stretches that are known, with the lag as far as that is known."""
        for gpu in self._gpus.values() if last else ():
            self._join(gpu, last)
        for gpu, stretch, inside in self._open:
            slots: dict[int, list[StackTime]] = {}
            lag = self._lag_of(stretch, [stack for stack, _ in inside]) if stretch.fine else 0.0
            for stack, blamed in inside:
                wait = stretch.wait_at(stack.time + lag, stack.seconds)
                slots.setdefault(stretch.slot(stack.time), []).extend(
                    (stack.time, wait, stack.seconds * part, frames) for frames, part in blamed
                )
            gpu.count(stretch, [one for slot in slots.values() for one in self._lines.divided(slot, stretch.wait)])
            for frames, times in gpu.take().items():
                self._put(frames, times)
        self._open = []

    def _lag_of(self, stretch: Stretch, stacks: Sequence[Stack]) -> float:
        """Return by how much power follows the work in one stretch: its samples are read late where the CPUs are busy."""
        known = [(stack.time, 2.0 * self._lines.share(stack.frames, stretch.wait) - 1.0) for stack in stacks]

        def agreement(lag: float) -> float:
            seen = sum((2.0 * stretch.wait_at(time + lag, 0.0) - 1.0) * expected for time, expected in known)
            return seen - 2.0 * len(known) * abs(lag - self._lag.seconds)

        return max(LAGS, key=agreement)

    @property
    def is_settled(self) -> bool:
        """Whether enough was seen to join stacks and activity: after a few seconds."""
        return self._lag.is_known or not self._lag.seen

    @property
    def knows_feeder(self) -> bool:
        """Whether the main thread is known to feed the GPU, so that no other thread needs to be looked at."""
        return self._feeder.is_main

    @property
    def waited(self) -> float:
        """Seconds of GPU time in which the GPUs waited, as their counters tell."""
        self._count(last=True)
        return sum(gpu.waited for gpu in self._gpus.values())

    @property
    def computed(self) -> float:
        """Seconds of GPU time in which the GPUs computed, as their counters tell."""
        self._count(last=True)
        return sum(gpu.computed for gpu in self._gpus.values())

    def stacks(self) -> list[TimedStack]:
        """Return every stack with the seconds in which the GPUs waited and computed, which add up to what the counters tell."""
        waited = _scale(self.waited, sum(times[0] for times in self._times.values()), self._stretch)
        computed = _scale(self.computed, sum(times[1] for times in self._times.values()), self._stretch)
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
        add_times(self._times, frames, *times)


class _Feeder:
    """Tells which thread gives work to the GPU: the main thread, unless only others are ever seen in libraries that do."""

    def __init__(self) -> None:
        self.is_main = False
        self._seen: dict[str, int] = {}

    def choose(self, threads: Sequence[Stack]) -> Stack | None:
        """Return the stack that counts, of those of one moment."""
        main = next((stack for stack in threads if stack.role == "main"), None)
        if main is not None and not self.is_main:
            self.is_main = feeds_gpu(main.frames)
        if self.is_main or not threads:
            return main
        for stack in threads:
            if stack.role == "thread" and feeds_gpu(stack.frames):
                self._seen[stack.thread] = self._seen.get(stack.thread, 0) + 1
        others = [stack for stack in threads if self._seen.get(stack.thread)]
        return max(others, key=lambda stack: self._seen[stack.thread]) if others else main


class _Lag:
    """Learns by how many seconds power follows the work: with the right lag, lines differ most in how much the GPU waits at them."""

    def __init__(self) -> None:
        self.seen = 0
        self._chosen = _USUAL
        self._sums: tuple[dict[Frames, list[float]], ...] = tuple({} for _ in LAGS)

    @property
    def is_known(self) -> bool:
        """Whether enough was seen."""
        return self.seen >= _TOLD_LAG

    @property
    def seconds(self) -> float:
        """The lag, as far as it is known."""
        return LAGS[self._chosen]

    def learn(self, stretch: Stretch, stacks: Sequence[Stack]) -> None:
        """Take the stacks of a stretch."""
        if self.seen >= _LEARNED_LAG:
            return
        self.seen += len(stacks)
        for stack in stacks:
            name, likely = _expected(stack.frames)
            for lag, sums in zip(LAGS, self._sums, strict=True):
                known = sums.setdefault(name, [0.0, 0.0, likely])
                known[0] += stretch.wait_at(stack.time + lag, 0.0)
                known[1] += 1.0
        if self.is_known:
            self._chosen = max(range(len(LAGS)), key=self._score)

    def _score(self, at: int) -> float:
        """Return how well a lag explains what was seen.

        In a regular loop one that is wrong by half a period tells lines apart as well, the wrong way round: then the GPU would compute
        where it is least likely to, and wait in calls that wait for it.
        """
        sums = self._sums[at].values()
        likely = sum(waited * likely for waited, _, likely in sums) / max(sum(waited for waited, _, _ in sums), 1e-9)
        return likely * sum(waited * waited / count for waited, count, _ in sums) * (1.0 - 0.01 * abs(at - _USUAL))


class _LineShares:
    """What share of the time at each line the GPU waited so far, to tell apart lines that share one value of a coarse counter."""

    def __init__(self) -> None:
        self._seconds: dict[Frames, tuple[float, float]] = {}  # waited and all, by the user's frames

    def divided(self, moments: list[StackTime], usual: float) -> list[StackTime]:
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

    def _divided(self, moments: list[StackTime], usual: float) -> list[StackTime]:
        left = sum(wait * seconds for _, wait, seconds, _ in moments)
        waits = [0.0] * len(moments)
        weights = [seconds * (wait + _UNSURE) * self.share(frames, usual) for _, wait, seconds, frames in moments]
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

    def share(self, frames: Frames, usual: float) -> float:
        """Return what share of the time the GPU waits at the line of a stack, as far as that is known."""
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


def _scale(wanted: float, seen: float, most: float) -> float:
    return min(most, max(1.0 / most, wanted / seen)) if seen > 0 else 1.0
