"""Recorded time: the stretches in which somebody recorded, known to every resolution, and the gaps between them.

A sample represents the time since the previous one; the first sample of a recorder and the first one after a gap represent no time. Every
block names the stretches of its samples, so that a row of ten minutes still says which of its seconds were recorded.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate, pairwise

from ...model.snapshot import HOLE, Cadence
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import TypeAlias

    Gaps: TypeAlias = "list[tuple[float, float]]"

_FIRST_HOLE = 60.0  # seconds between two samples that are a gap while the recorder's interval is unknown
_LEAST_HOLE = (
    15.0  # seconds; a server samples every 10 s while nobody watches, which is no gap after samples every second
)
_TOUCHING = 0.002  # seconds; times are kept in milliseconds
_STRETCH = struct.Struct("<ddd")
_END = struct.Struct("<I4s")  # number of stretches, and the mark
_MARK = b"rec1"


class RecordedSpan(Value):
    """Recorded time from the first sample to the last one; `interval` is the usual number of seconds between them."""

    start: float
    stop: float
    interval: float


def history_cadence() -> Cadence:
    """Return the rule by which samples of a history follow each other."""
    return Cadence(_FIRST_HOLE, _LEAST_HOLE, 0.0)


def stretches_of(
    times: Sequence[float], before: Sequence[float] = (), starts: Collection[float] = ()
) -> list[RecordedSpan]:
    """Return the stretches of samples, which rise; `before` are the samples before them, and at each of `starts` a recorder began."""
    cadence = history_cadence()
    for time in before:
        cadence.next(time)
    found: list[RecordedSpan] = []
    for time in times:
        seconds, late = cadence.next(time)
        begins = late or time in starts
        if found and not begins:
            found[-1].stop, found[-1].interval = time, cadence.usual
        else:
            found.append(RecordedSpan(time if begins else time - seconds, time, cadence.usual))
    return found


def estimated(times: Sequence[float], seconds: Sequence[float], tier: int) -> list[RecordedSpan]:
    """Return the stretches of rows of `tier` seconds that do not name them, as far as their distance and recorded seconds tell.

    Blocks that were written before blocks named their stretches have such rows.
    """
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    usual = steps[len(steps) // 2] if steps else 0.0
    interval = usual if usual > 1.5 * tier else 0.0  # else, samples are closer than rows
    found: list[RecordedSpan] = []
    last = 0.0
    for time, lasted in zip(times, seconds, strict=True):
        there = min(lasted, tier)  # recording may have begun or ended inside a row
        if found and time - last <= 1.9 * max(tier, usual):
            found[-1].stop = max(found[-1].stop, time + there)
        else:
            found.append(RecordedSpan(time + tier - there, time + tier, interval))
        last = time
    return found


def pack_stretches(stretches: Sequence[RecordedSpan]) -> bytes:
    """Return stretches as bytes that follow others; `unpack_stretches` finds them at the end."""
    body = [_STRETCH.pack(one.start, one.stop, one.interval) for one in stretches]
    return b"".join((*body, _END.pack(len(body), _MARK)))


def unpack_stretches(data: bytes) -> list[RecordedSpan] | None:
    """Return the stretches at the end of bytes; None if there are none."""
    count, mark = _END.unpack(data[-_END.size :]) if len(data) >= _END.size else (0, b"")
    size = count * _STRETCH.size + _END.size
    if mark != _MARK or size > len(data):
        return None
    return [RecordedSpan(*numbers) for numbers in _STRETCH.iter_unpack(data[-size : -_END.size])]


def union(stretches: Iterable[RecordedSpan]) -> list[RecordedSpan]:
    """Return stretches in order of time, with those that overlap or touch as one."""
    found: list[RecordedSpan] = []
    for one in sorted(stretches, key=lambda stretch: (stretch.start, stretch.stop)):
        if found and one.start <= found[-1].stop + _TOUCHING:
            if one.stop > found[-1].stop:
                found[-1].stop, found[-1].interval = one.stop, one.interval
        else:
            found.append(one.replace())
    return found


class RecordedTime:
    """What was recorded between two times and shortly around them, from stretches as `union` returns them."""

    __slots__ = ("_before", "_starts", "stretches")

    def __init__(self, stretches: Sequence[RecordedSpan]) -> None:
        self.stretches = stretches
        self._starts = [one.start for one in stretches]
        self._before = [0.0, *accumulate(one.stop - one.start for one in stretches)]

    def seconds(self, start: float, end: float) -> float:
        """Return how many of the seconds between two times were recorded."""
        return max(0.0, self._until(end) - self._until(start))

    def share(self, first: float, last: float, start: float, end: float) -> float:
        """Return which part of something that was counted from `first` to `last` belongs to the time from `start` to `end`."""
        if last <= first:
            return float(start <= last < end)
        start, end = max(first, start), min(last, end)
        if end <= start:
            return 0.0
        whole = self.seconds(first, last)
        return self.seconds(start, end) / whole if whole else (end - start) / (last - first)

    def part_of(self, start: float, end: float) -> tuple[float, float] | None:
        """Return the first and the last recorded moment between two times; None if nothing was recorded."""
        at = max(0, bisect_right(self._starts, start) - 1)
        inside = [one for one in self.stretches[at : bisect_right(self._starts, end)] if one.stop >= start - _TOUCHING]
        return (max(start, inside[0].start), min(end, inside[-1].stop)) if inside else None

    def gaps(self, start: float, end: float) -> Gaps:
        """Return the times between two in which samples are missing, by the recorder's own interval."""
        if not (known := self.stretches):
            return [(start, end)]
        found = [(one.stop, other.start) for one, other in pairwise(known) if _is_gap(one, other)]
        if known[0].start - start > _hole(known[0]):
            found.insert(0, (start, known[0].start))
        if end - known[-1].stop > _hole(known[-1]):
            found.append((known[-1].stop, end))
        return [(max(start, first), min(end, last)) for first, last in found if first < end and last > start]

    def holds(self, at: float) -> bool:
        """Tell whether a moment was recorded: it lies in a stretch, or the next sample was not due yet."""
        after = next((place for place, one in enumerate(self.stretches) if one.start > at), len(self.stretches))
        if after == 0:
            return False
        last = self.stretches[after - 1]
        if at <= last.stop + last.interval:
            return True
        if after < len(self.stretches):
            return not _is_gap(last, self.stretches[after])
        return at - last.stop <= _hole(last)

    def _until(self, time: float) -> float:
        at = bisect_right(self._starts, time) - 1
        return 0.0 if at < 0 else self._before[at] + min(time, self.stretches[at].stop) - self._starts[at]


def _hole(stretch: RecordedSpan) -> float:
    return max(HOLE * stretch.interval, _LEAST_HOLE)


def _is_gap(one: RecordedSpan, other: RecordedSpan) -> bool:
    return other.start - one.stop > _hole(one)
