"""The last minutes: values for charts, and whole snapshots to step back to, both in little memory."""

from __future__ import annotations

from array import array
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...model.snapshot import Snapshot

_SAMPLES = 900  # whole snapshots kept, packed: 15 minutes at one a second, 2 KB each
_POINTS = 43_200  # chart points kept a series: 12 hours at one a second, 4 bytes each
_NAN = float("nan")


class History:
    """What was seen, oldest first. Series are kept for the metrics named in `keys`, by GPU index; written by one thread."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = tuple(keys)
        self.times: array[float] = array("d")
        self.turns = 0  # how often the clock was set back: what was drawn from the old times is void
        self._series: dict[tuple[int, str], array[float]] = {}
        self._packed: deque[tuple[float, bytes]] = deque(maxlen=_SAMPLES)

    def watch(self, keys: Iterable[str]) -> None:
        """Keep series of these metrics from now on; those kept before stay."""
        self.keys = tuple(dict.fromkeys((*self.keys, *keys)))

    def add(self, snapshot: Snapshot) -> None:
        """Take in a sample. One that is earlier than the last, as after a clock was set back, ends what came after it."""
        if self.times and snapshot.time <= self.times[-1]:
            self._cut(snapshot.time)
        self.times.append(snapshot.time)
        for at, gpu in enumerate(snapshot.gpus):
            index = at if gpu.index is None else int(gpu.index)
            for key in self.keys:
                series = self._series.get((index, key))
                if series is None:
                    series = self._series[index, key] = array("f", [_NAN] * (len(self.times) - 1))
                if len(series) == len(self.times):
                    continue  # two that call themselves the same: the first counts
                value = gpu.get(key)
                series.append(float(value) if isinstance(value, (int, float)) else _NAN)
        for series in self._series.values():
            if len(series) < len(self.times):
                series.append(_NAN)  # a GPU that is gone leaves a hole
        self._trim()
        self._packed.append((snapshot.time, _pack(snapshot)))

    def prepend(self, times: Sequence[float], series: Mapping[tuple[int, str], Sequence[float]]) -> None:
        """Put points before those that were seen, as far as they are older; what is drawn from the old times is void."""
        from bisect import bisect_left

        count = len(times) if not self.times else bisect_left(times, self.times[0])
        if not count:
            return
        hole = array("f", [_NAN]) * count
        for name in {*self._series, *series}:
            before = array("f", series[name][:count]) if name in series else hole
            self._series[name] = before + self._series.get(name, array("f", [_NAN]) * len(self.times))
        self.times = array("d", times[:count]) + self.times
        self.turns += 1

    def series(self, gpu: int, key: str, since: float) -> tuple[Sequence[float], Sequence[float]]:
        """Return times and values of a metric from a moment on; a missing value is NaN."""
        start = self._first(since)
        values = self._series.get((gpu, key))
        return self.times[start:], values[start:] if values is not None else array(
            "f", [_NAN] * (len(self.times) - start)
        )

    def moments(self) -> list[float]:
        """Return the times of the whole snapshots that can be stepped back to."""
        return [time for time, _ in self._packed]

    def sample_at(self, moment: float) -> Snapshot | None:
        """Return the newest sample not later than a moment, or the oldest there is; None when there is none."""
        found: bytes | None = None
        for time, packed in self._packed:
            if found is not None and time > moment:
                break
            found = packed
        return None if found is None else _unpack(found)

    def _cut(self, moment: float) -> None:
        start = self._first(moment)
        del self.times[start:]
        for series in self._series.values():
            del series[start:]
        while self._packed and self._packed[-1][0] >= moment:
            self._packed.pop()
        self.turns += 1

    def _first(self, since: float) -> int:
        from bisect import bisect_left

        return bisect_left(self.times, since)

    def _trim(self) -> None:
        if len(self.times) > _POINTS + 3600:  # now and then, not at every sample
            drop = len(self.times) - _POINTS
            del self.times[:drop]
            for series in self._series.values():
                del series[:drop]


def _pack(snapshot: Snapshot) -> bytes:
    import zlib  # after the first picture

    from ...model.codec import to_line

    return zlib.compress(to_line(snapshot).encode(), 1)


def _unpack(packed: bytes) -> Snapshot:
    import zlib

    from ...model.codec import from_line

    return from_line(zlib.decompress(packed).decode())
