"""The last minutes: values for charts, and complete snapshots to step back to, both compact in memory."""

from __future__ import annotations

import marshal
from array import array
from collections import deque

from ...model.catalog import CURVES, Gpu, Host, Process, Server
from ...model.snapshot import Problem, Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from ...model.catalog import State
    from ...model.metric import Gap, Reading, Value

    Slot: TypeAlias = tuple[float, float, float]

_SAMPLES = 900  # complete snapshots, compressed: 15 minutes at one per second, 1 KB each
_TOGETHER = 10  # snapshots compressed at a time: each call of zlib sets up 256 KB
_POINTS = 43_200  # chart points per series: 12 hours at one per second, 4 bytes each
_RECENT = 3600  # points of the other curves: an hour, so that a chart that is opened later is not empty
_NAN = float("nan")


class History:
    """Recorded samples, oldest first. Series are kept for the metrics in `keys`, by GPU index; written by one thread.

    `recent` keeps the last hour of all other metrics that are worth a curve.
    """

    def __init__(self, keys: Iterable[str], points: int | None = None) -> None:
        self.keys = tuple(keys)
        self.recent: History | None = History(CURVES, _RECENT) if points is None else None
        self._points = _POINTS if points is None else points
        self.times: array[float] = array("d")
        self.turns = 0  # how often the clock was set back, which invalidates what was drawn before
        self._series: dict[tuple[int, str], array[float]] = {}
        self._packed: deque[tuple[list[float], bytes]] = deque(maxlen=_SAMPLES // _TOGETHER)  # oldest first
        self._fresh: list[tuple[float, bytes]] = []  # those since, fewer than are compressed together

    def watch(self, keys: Iterable[str]) -> None:
        """Keep series of these metrics from now on, after what `recent` has of them; existing ones stay."""
        fresh = dict.fromkeys(key for key in keys if key not in self.keys)
        self.keys = (*self.keys, *fresh)
        for (gpu, key), values in (self.recent._series if self.recent else {}).items():
            if key in fresh:
                hole = array("f", [_NAN]) * (len(self.times) - len(values))
                self._series[gpu, key] = hole + values[-len(self.times) :]

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample. If it is earlier than the last one, because the clock was set back, later samples are dropped."""
        self._add_values(snapshot)
        if self.recent is not None:
            self.recent._add_values(snapshot, self.keys)
        self._fresh.append((snapshot.time, _pack(snapshot)))
        if len(self._fresh) == _TOGETHER:
            self._packed.append(([time for time, _ in self._fresh], _compressed([packed for _, packed in self._fresh])))
            self._fresh = []

    def _add_values(self, snapshot: Snapshot, except_for: Sequence[str] = ()) -> None:
        if self.times and snapshot.time <= self.times[-1]:
            self._cut(snapshot.time)
        self.times.append(snapshot.time)
        for at, gpu in enumerate(snapshot.gpus):
            index = at if gpu.index is None else int(gpu.index)
            for key in self.keys:
                if key in except_for:
                    continue
                series = self._series.get((index, key))
                if series is None:
                    series = self._series[index, key] = array("f", [_NAN] * (len(self.times) - 1))
                if len(series) == len(self.times):
                    continue  # two GPUs with the same index: the first one is used
                value = gpu.get(key)
                series.append(float(value) if isinstance(value, (int, float)) else _NAN)
        for series in self._series.values():
            if len(series) < len(self.times):
                series.append(_NAN)  # a missing GPU leaves a gap
        self._trim()

    def prepend(self, times: Sequence[float], series: Mapping[tuple[int, str], Sequence[float]]) -> None:
        """Prepend older points from the history; this invalidates what was drawn before."""
        if self.recent is not None:
            mine = {name: values for name, values in series.items() if name[1] in self.keys}
            others = {name: values for name, values in series.items() if name[1] not in self.keys}
            self.recent._prepend(times, others)
            self._prepend(times, mine)

    def _prepend(self, times: Sequence[float], series: Mapping[tuple[int, str], Sequence[float]]) -> None:
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
        """Return times and values of a metric since a time; a missing value is NaN."""
        if self.recent is not None and key not in self.keys:
            return self.recent.series(gpu, key, since)
        start = self._first(since)
        values = self._series.get((gpu, key))
        return self.times[start:], values[start:] if values is not None else array(
            "f", [_NAN] * (len(self.times) - start)
        )

    def points(self, gpus: Sequence[int], key: str, since: float) -> list[tuple[float, list[float]]]:
        """Return the times since a time, each with the values of a metric of these GPUs; a missing value is NaN."""
        if self.recent is not None and key not in self.keys:
            return self.recent.points(gpus, key, since)
        series = [self._series.get((gpu, key)) for gpu in gpus]
        places = range(self._first(since), len(self.times)) if gpus else ()
        return [(self.times[at], [_NAN if values is None else values[at] for values in series]) for at in places]

    def moments(self) -> list[float]:
        """Return the times of the snapshots to step back to."""
        kept = [time for times, _ in self._packed for time in times]
        return [*kept, *(time for time, _ in self._fresh)][-_SAMPLES:]

    def sample_at(self, moment: float) -> Snapshot | None:
        """Return the newest sample not later than a time, or the oldest one; None if there is none."""
        moments = self.moments()
        if not moments:
            return None
        time = next((time for time in reversed(moments) if time <= moment), moments[0])
        for known, packed in self._fresh:
            if known == time:
                return _unpack(packed)
        times, block = next(one for one in self._packed if time in one[0])
        return _unpack(_decompressed(block)[times.index(time)])

    def last(self, gpu: int, key: str, since: float, until: float) -> list[float]:
        """Return the known values of a metric between two times."""
        times, values = self.series(gpu, key, since)
        return [value for time, value in zip(times, values, strict=False) if time <= until and value == value]

    def _cut(self, moment: float) -> None:
        start = self._first(moment)
        del self.times[start:]
        for series in self._series.values():
            del series[start:]
        while self._packed and self._packed[-1][0][-1] >= moment:
            times, block = self._packed.pop()
            self._fresh = list(zip(times, _decompressed(block), strict=True))
        self._fresh = [(time, packed) for time, packed in self._fresh if time < moment]
        self.turns += 1

    def _first(self, since: float) -> int:
        from bisect import bisect_left

        return bisect_left(self.times, since)

    def _trim(self) -> None:
        if len(self.times) > self._points + 3600:  # from time to time, not at every sample
            drop = len(self.times) - self._points
            del self.times[:drop]
            for series in self._series.values():
                del series[:drop]


def _pack(snapshot: Snapshot) -> bytes:
    """Return a snapshot in a form that takes a tenth of the time of JSON; it never leaves this process."""

    gpus, serving = [_plain_gpu(gpu) for gpu in snapshot.gpus], [_plain(server) for server in snapshot.serving]
    problems = [(problem.source, problem.message, problem.remedy) for problem in snapshot.problems]
    whole = (snapshot.time, gpus, _plain(snapshot.host), dict(snapshot.driver), problems, serving)
    return marshal.dumps(whole)


def _compressed(packed: list[bytes]) -> bytes:
    import zlib  # loaded after the first frame

    return zlib.compress(marshal.dumps(packed), 1)


def _decompressed(block: bytes) -> list[bytes]:
    import zlib

    found: list[bytes] = marshal.loads(zlib.decompress(block))
    return found


def _plain(reading: Reading) -> tuple[dict[str, Value], dict[str, Gap]]:
    return dict(reading.items()), dict(reading.gaps)


def _plain_gpu(gpu: Gpu) -> tuple[Any, ...]:
    processes, instances = [_plain(process) for process in gpu.processes], [_plain_gpu(part) for part in gpu.instances]
    return *_plain(gpu), gpu.state, gpu.since, processes, instances


def _unpack(packed: bytes) -> Snapshot:

    time, gpus, host, driver, problems, serving = marshal.loads(packed)
    return Snapshot(
        time,
        tuple(_gpu_of(*gpu) for gpu in gpus),
        Host(*host),
        driver,
        tuple(Problem(*problem) for problem in problems),
        tuple(Server(*server) for server in serving),
    )


def _gpu_of(
    values: dict[str, Value], gaps: dict[str, Gap], state: State, since: float | None, processes: Any, instances: Any
) -> Gpu:
    rows = tuple(Process(*process) for process in processes)
    return Gpu(
        values, gaps, state=state, since=since, processes=rows, instances=tuple(_gpu_of(*one) for one in instances)
    )


_TRACES = 256  # kept at once: a span or a size that is gone is made anew when it comes back
_LATE = 2.5  # times the usual step after which a sample is missing, not late
_NEVER = float("-inf")


class ChartTrace:
    """Lowest, highest and last value of a series in slots of equal time, filled as samples arrive; each point is read once.

    A slot between two samples that came one after the other holds the value of the first: samples are never exactly evenly spaced.
    """

    def __init__(self, gpus: tuple[int, ...], key: str, slot: float) -> None:
        self.gpus = gpus
        self.key = key
        self.slot = slot
        self._since = _NEVER
        self._clear()

    def _clear(self) -> None:
        self._slots: dict[int, Slot] = {}
        self._read, self._step, self._last = _NEVER, 0.0, _NAN

    def follow(self, history: History, since: float, interval: float) -> None:
        """Take in the points that came since the last call; all from `since` on are then in."""
        if since < self._since - self.slot:  # looking further back than ever before: from the beginning
            self._clear()
            since = _NEVER
        if self._read == _NEVER:
            self._since = since
        for moment, row in history.points(self.gpus, self.key, max(since, self._read)):
            if moment > self._read:
                self._add(moment, mean(row), interval)

    def _add(self, moment: float, value: float, interval: float) -> None:
        at, step, last = int(moment // self.slot), moment - self._read, self._last
        if last == last and step <= _LATE * max(interval, self._step):
            for between in range(int(self._read // self.slot) + 1, at):
                self._slots[between] = (last, last, last)
        if value == value:
            low, high, _ = self._slots.get(at, (value, value, value))
            self._slots[at] = (min(low, value), max(high, value), value)
        self._read, self._step, self._last = moment, 0.0 if step == float("inf") else step, value

    def slots(self, end: float, count: int) -> list[Slot | None]:
        """Return lowest, highest and last of the last `count` slots up to a moment; None is a hole."""
        last = int(end // self.slot)
        found = [self._slots.get(at) for at in range(last - count + 1, last + 1)]
        if len(self._slots) > 8 * count + 64:
            self._slots = {at: value for at, value in self._slots.items() if at > last - 4 * count}
            self._since = (last - 4 * count + 1) * self.slot
        return found


class _Memory:
    """Traces of the history on screen, by what they show; another history starts over."""

    def __init__(self) -> None:
        self.history: History | None = None
        self.turns = 0
        self.traces: dict[tuple[tuple[int, ...], str, float], ChartTrace] = {}

    def trace(self, history: History, gpus: tuple[int, ...], key: str, slot: float) -> ChartTrace:
        if self.history is not history or self.turns != history.turns or len(self.traces) > _TRACES:
            self.history, self.turns = history, history.turns
            self.traces = {}
        return self.traces.setdefault((gpus, key, slot), ChartTrace(gpus, key, slot))


traces = _Memory()


def mean(values: Sequence[float]) -> float:
    """Return the mean of the known values; NaN if there is none."""
    if not values:
        return _NAN
    total = sum(values)
    if total == total:
        return total / len(values)
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else _NAN


KEYS = ("memory_used", "sm_utilization", "cpu_percent", "host_memory")
_PROCESS_SAMPLES = 300
_MOST = 500  # maximum number of processes to follow, to limit memory


class ProcessPast:
    """The usage of processes at the last samples, oldest first; ended processes are forgotten. Memory on several GPUs is added up."""

    def __init__(self) -> None:
        self._samples: dict[int, deque[dict[str, float]]] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample."""
        now: dict[int, dict[str, float]] = {}
        for gpu in snapshot.gpus:
            for process in gpu.all_processes():
                if process.pid is None or (len(now) >= _MOST and process.pid not in now):
                    continue
                values = now.setdefault(int(process.pid), {})
                for key in KEYS:
                    value = process.get(key)
                    if isinstance(value, (int, float)):
                        summed = key in ("memory_used", "sm_utilization")
                        values[key] = values.get(key, 0.0) + value if summed else float(value)
        self._samples = {pid: self._samples.get(pid) or deque(maxlen=_PROCESS_SAMPLES) for pid in now}
        for pid, values in now.items():
            self._samples[pid].append(values)

    def series(self, pid: int, key: str) -> list[float | None]:
        """Return the values of a process, None for samples without one."""
        return [values.get(key) for values in self._samples.get(pid, ())]
