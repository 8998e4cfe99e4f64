"""Rules for memory: a GPU that is nearly full, and a process that takes more and more."""

from __future__ import annotations

from itertools import pairwise

from ...model.catalog import memory_percent
from ...model.event import Event
from ...model.select import Wanted
from ..events import NEARLY_FULL
from .rule import Finding, Lasting, duration, number, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...model.catalog import Gpu
    from .rule import RuleInput
    from .rule_set import HolderTrack

_WANTED = Wanted(
    gpu=("memory_used", "memory_total", "memory_reserved", "memory_percent"),
    process=("pid", "name", "command", "user", "memory_used", "running_time"),
)
_PEAKS = 8  # intervals that a slope needs, and what `over` is divided by
_RISES = 5
_FLAT = 3  # intervals without a rise after which it no longer grows
_KEPT = 2 * _PEAKS
_SCALES = (1, 4, 16, 64)  # times `over`: a leak of one step per epoch shows only over many epochs
_START = 120.0  # seconds of a process in which it loads, compiles and tries out


class MemoryNearlyFull(Lasting):
    """A GPU whose memory is nearly full, unless those who hold it take it ahead of need: then it says nothing."""

    name = "memory"
    settings = {
        "above": (number, NEARLY_FULL),
        "clear": (number, None),
        "for": (duration, 10.0),
        "clear_for": (duration, 30.0),
    }
    wanted = _WANTED

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        above, clear = self.value("above"), self.given("clear")
        clear = above - 3 if clear is None else clear
        for uuid, name, at, gpu in sample.all():
            share = _share(gpu)
            if share is None or gpu.instances:  # the instances speak for themselves
                continue
            holders = sample.holders.on(gpu)
            ahead = bool(holders) and holders[0].takes_ahead
            event = Event(
                sample.snapshot.time,
                "memory-nearly-full",
                (at or "?",),
                uuids=(uuid,),
                value=share,
                values={"memory_percent": share},
                process=holders[0].process if holders else None,
                note=name if uuid in sample.instances else "",
            )
            yield Finding(uuid, share >= above and not ahead, share <= clear or ahead, event=event)


class Leak(Lasting):
    """A process whose memory grows without an end: peaks that rise over `over` seconds, by `rise` bytes, and never rest for long.

    The same is looked for over 4, 16 and 64 times as long, where it has to rise by 2, 4 and 8 times as much: allocators fragment, too.
    """

    name = "leak"
    settings = {"over": (duration, 600.0), "rise": (size, float(256 << 20))}
    wanted = _WANTED

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._growths: dict[tuple[str, str], list[_Growth]] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for ended in sample.holders.ended:
            if self._growths.pop((ended.uuid, ended.pid), None) is not None:
                event = ended.event(sample.snapshot.time, "process-end", value=ended.most)
                yield Finding(ended.uuid, None, what=ended.pid, over=True, event=event)
        shortest = max(60.0, self.value("over")) / _PEAKS
        for holder in sample.holders.present():
            if holder.held is None:
                continue
            key = holder.uuid, holder.pid
            if (growths := self._growths.get(key)) is None:
                growths = self._growths[key] = [_Growth(shortest * scale) for scale in _SCALES]
            if sample.now - holder.since < _START and (holder.process.running_time or 0.0) < _START:
                continue
            if sum(growth.add(holder.held, sample.now) for growth in growths):
                yield self._finding(holder, growths, sample.snapshot.time)

    def _finding(self, holder: HolderTrack, growths: Sequence[_Growth], time: float) -> Finding:
        grown = (growth for at, growth in enumerate(growths) if growth.rise >= self.value("rise") * 2**at)
        slope = next((slope for growth in grown if (slope := growth.slope()) is not None), None)
        values: dict[str, float | str] = {"memory_used": holder.held or 0.0}
        if slope is not None:
            low, middle, high = slope
            values |= {"bytes_per_second": middle, **_full_in(holder.gpu, low, high)}
        event = holder.event(time, "memory-growth", value=None if slope is None else slope[1], values=values)
        holds = slope is not None and not holder.takes_ahead
        calm = holder.takes_ahead or (slope is None and growths[0].flat)
        return Finding(holder.uuid, holds, calm, event=event, what=holder.pid, patience=0.0)


class _Growth:
    """The peaks of one process, one an interval: a caching allocator makes stairs, and only the peaks tell."""

    __slots__ = ("_interval", "_peaks", "_times", "_until")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._peaks: list[float] = []
        self._times: list[float] = []
        self._until: float | None = None

    def add(self, held: float, now: float) -> bool:
        """Take a sample; True when an interval has come to its end."""
        whole = self._until is not None and now >= self._until
        if self._until is None or whole:
            self._until = now + self._interval
            self._peaks.append(held)
            self._times.append(now)
            del self._peaks[:-_KEPT], self._times[:-_KEPT]
        elif held > self._peaks[-1]:
            self._peaks[-1] = held
        return whole

    @property
    def _done(self) -> tuple[Sequence[float], Sequence[float]]:
        return self._times[:-1], self._peaks[:-1]  # the last interval goes on

    @property
    def rise(self) -> float:
        """Bytes from the first to the last peak."""
        peaks = self._done[1]
        return peaks[-1] - peaks[0] if peaks else 0.0

    @property
    def flat(self) -> bool:
        """Whether it has rested for longer than growth does."""
        peaks = self._done[1]
        return len(peaks) > _FLAT and peaks[-1] <= peaks[-1 - _FLAT]

    def slope(self) -> tuple[float, float, float] | None:
        """Return bytes per second, low bound, middle and high, where it is sure to be growth (Theil-Sen, 95 %); else None."""
        times, peaks = self._done
        count = len(peaks)
        rising = [after > before for before, after in pairwise(peaks)]
        if count < _PEAKS or sum(rising) < _RISES or _longest_rest(rising) > _FLAT:
            return None
        slopes = sorted(
            (peaks[b] - peaks[a]) / (times[b] - times[a]) for a in range(count) for b in range(a + 1, count)
        )
        spread = 1.96 * (count * (count - 1) * (2 * count + 5) / 18) ** 0.5
        low = slopes[max(0, int((len(slopes) - spread) / 2))]
        high = slopes[min(len(slopes) - 1, int((len(slopes) + spread) / 2) + 1)]
        return (low, slopes[len(slopes) // 2], high) if low > 0 else None


def _longest_rest(rising: Sequence[bool]) -> int:
    longest = rest = 0
    for rises in rising:
        rest = 0 if rises else rest + 1
        longest = max(longest, rest)
    return longest


def _full_in(gpu: Gpu, low: float, high: float) -> dict[str, float]:
    """Return in how many seconds the memory is full, with the fastest and the slowest growth that fits."""
    used, total = gpu.memory_used, gpu.memory_total
    if used is None or total is None:
        return {}
    left = max(0.0, total - (gpu.memory_reserved or 0.0) - used)
    return {"full_in_low": left / high, "full_in_high": left / low}


def _share(gpu: Gpu) -> float | None:
    return gpu.memory_percent if gpu.memory_percent is not None else memory_percent(dict(gpu.items()))
