"""The event detector: compares each snapshot with earlier ones and returns what happened, changes of the clock included."""

from __future__ import annotations

from itertools import pairwise

from ..model.catalog import DOWN
from ..model.condition import rank
from ..model.event import Event
from ..model.identity import PLACE, GpuIdentities, rename
from ..sampling.clock import SystemClock
from ..value import Value, fresh
from .link_watch import LinkWatch
from .readings import HARMLESS, XidNews, is_another, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model.catalog import Gpu, Process
    from ..model.snapshot import Snapshot

_CALM = 10.0  # seconds without a reason before a GPU counts as no longer throttled: some flicker every second
NEARLY_FULL = 95.0  # percent of memory in use at which a larger allocation is likely to fail
IDLE_HELD = 500 << 20  # bytes that a process must hold to be told for doing nothing
IDLE_CPU = 0.3  # cores below which it does nothing; a JAX program at rest takes 0.2
# A process that ends has probably run out of memory if all of it was in use and still rising, or after a steep rise.
FULL = 97.0  # percent of memory in use
_GROWN = 0.01  # of all the memory, gained by the process meanwhile
STEEP = 0.15  # of all the memory, gained in steps until its end
RECENT = 5.0  # seconds before its end that are looked at
LAST_RISE = 3.0  # seconds between the last step and the end
_RISES = 2  # steps
_STEP = 256 << 20  # bytes
_GROWTH = 1.3  # times what was held before that each step must reach; a steady leak grows more slowly


class EventDetector:
    """Finds events in snapshots handed over in the order of time. For one thread.

    Processes present in the first snapshot, or on a GPU that appears, did not start just now. An event that lasts is returned when
    it begins and again, with the same `key` and its `until`, when it is over. It finds where the system clock was set back; with
    the `clock` of a live machine also where it was set forward, and suspends.
    """

    def __init__(self, clock: RecordedClock | None = None) -> None:
        self._gpus: dict[str, _WatchedGpu] = {}
        self._identities = GpuIdentities()
        self._began = False
        self._clock = clock or RecordedClock()
        self._links = LinkWatch()

    def observe(self, snapshot: Snapshot) -> list[Event]:
        """Return what happened since the snapshot before, the worst first."""
        found = self._clock.observe(snapshot.time)
        leap = sum(event.value or 0.0 for event in found if event.kind == "clock")
        ended: dict[float, _Ended] = {}
        present = set()
        names = self._identities.keys(snapshot.gpus)
        rename(self._gpus, self._identities.renamed)
        for position, (name, gpu) in enumerate(zip(names, snapshot.gpus, strict=True)):
            present.add(name)
            new = name not in self._gpus
            watched = self._gpus.setdefault(name, _WatchedGpu())
            watched.label, watched.uuid = number_of(gpu) or f"{position}", "" if name.startswith(PLACE) else name
            if new and self._began:
                found.append(watched.event(snapshot.time, "added"))
            found += watched.compare(gpu, snapshot.time, leap, ended)
        for name in self._gpus.keys() - present:
            found.append(self._gpus.pop(name).event(snapshot.time, "removed"))
        self._began = True
        found += self._links.observe(snapshot)
        found = _joined(found) + [end.event(snapshot.time) for end in ended.values()]
        return sorted(found, key=lambda event: rank(event.severity, event.kind))

    @property
    def links(self) -> list[Event]:
        """What is wrong with links as of the last snapshot."""
        return list(self._links.open)

    def finish(self) -> list[Event]:
        """Return the ends of throttling that was over at the last snapshot, though not for long enough to be sure."""
        return [end for watched in self._gpus.values() if (end := watched.finish()) is not None]


class _Ended(Value):
    """A process that is gone from some GPUs at one snapshot."""

    process: Process
    gpus: list[str] = fresh(factory=list)
    uuids: list[str] = fresh(factory=list)
    peak: float | None = None
    ran_out: float | None = None

    def event(self, time: float) -> Event:
        kind, value = ("process-end", self.peak) if self.ran_out is None else ("out-of-memory", self.ran_out)
        return Event(time, kind, tuple(self.gpus), tuple(self.uuids), self.process, value=value)


class _Held:
    """The memory of one process on one GPU: its peak, and its last seconds with how full the GPU was."""

    __slots__ = ("peak", "process", "recent")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.peak: float | None = None
        self.recent: list[tuple[float, float, float]] = []

    def add(self, process: Process, gpu: Gpu, time: float) -> None:
        self.process = process
        if process.memory_used is not None:
            self.peak = max(self.peak or 0.0, process.memory_used)
            self.recent.append((time, process.memory_used, gpu.memory_percent or 0.0))
            while self.recent[0][0] < time - RECENT:
                del self.recent[0]

    def ran_out(self, total: float | None) -> float | None:
        """Return the most bytes it held at the end if it seems to have run out of memory, else None."""
        held, full = [one[:2] for one in self.recent], max((percent for _, _, percent in self.recent), default=0.0)
        return max(size for _, size in held) if ran_out(held, full, total) else None


def ran_out(held: Sequence[tuple[float, float]], full: float, total: float | None) -> str:
    """Return what says that a process which ended ran out of memory: "full" or "steep"; empty if nothing does.

    `held` are the times and bytes of its last seconds, `full` is the highest share of the memory in use meanwhile, in percent.
    """
    if not held or not total:
        return ""
    rise = held[-1][1] - min(size for _, size in held)
    if full >= FULL and rise >= _GROWN * total:
        return "full"
    steps = [
        time
        for (_, earlier), (time, later) in pairwise(held)
        if later >= _GROWTH * earlier and later - earlier >= _STEP
    ]
    climbs = len(steps) >= _RISES and held[-1][0] - steps[-1] <= LAST_RISE
    return "steep" if climbs and rise >= STEEP * total else ""


class _WatchedGpu:
    """State of one GPU as of the previous snapshot."""

    __slots__ = (
        "_errors", "_fault", "_held", "_listed", "_reasons_seen", "_state", "_throttling", "_xids", "label", "uuid",
    )  # fmt: skip

    def __init__(self) -> None:
        self.label = self.uuid = ""
        self._state = "ok"
        self._fault: Event | None = None
        self._xids = XidNews()
        self._errors: float | None = None
        self._throttling: Event | None = None
        self._reasons_seen = 0.0
        self._held: dict[float, _Held] | None = None
        self._listed = 0.0  # when its processes were last told

    def event(self, time: float, kind: str, **fields: Any) -> Event:
        """Return an event of this GPU."""
        return Event(time, kind, (self.label,), uuids=(self.uuid,) if self.uuid else (), **fields)

    def compare(self, gpu: Gpu, time: float, leap: float, ended: dict[float, _Ended]) -> list[Event]:
        """Return what happened; `leap` is by how many seconds the clock was set forward meanwhile."""
        self._listed += leap
        found = self._compare_state(gpu, time)
        codes = self._xids.codes(gpu)
        for code in dict.fromkeys(codes):
            repeats = {"count": float(codes.count(code))} if codes.count(code) > 1 else {}
            found.append(self.event(time, "xid", value=float(code), values=repeats))
        if (errors := gpu.ecc_uncorrected) is not None:
            if self._errors is not None and errors > self._errors:
                found.append(self.event(time, "memory-errors", value=errors - self._errors))
            self._errors = errors
        if gpu.throttle_reasons is not None:
            found += self._compare_throttling(gpu, time)
        if gpu.state == "ok" and "processes" not in gpu.gaps:
            found += self._compare_processes(gpu, time, ended)
        return found

    def finish(self) -> Event | None:
        return None if self._throttling is None or self._throttling.until is None else self._throttling

    def _compare_state(self, gpu: Gpu, time: float) -> list[Event]:
        if gpu.state == self._state:
            return []
        self._state = gpu.state
        found = [] if self._fault is None else [self._fault.replace(until=time)]
        began = time if gpu.since is None else min(time, gpu.since)
        event = self.event(began, "back" if gpu.state == "ok" else gpu.state, value=gpu.xid_last)
        self._fault = event if gpu.state in DOWN else None
        return [event, *found]

    def _compare_throttling(self, gpu: Gpu, time: float) -> list[Event]:
        reasons = tuple(reason for reason in gpu.throttle_reasons or () if reason not in HARMLESS)
        event = self._throttling
        if not reasons:
            if event is None:
                return []
            self._throttling = event = event.replace(until=self._reasons_seen)
            if 0 <= time - self._reasons_seen < _CALM:
                return []
            self._throttling = None
            return [event]
        self._reasons_seen = time
        if event is None:
            self._throttling = self.event(time, "throttled", reasons=reasons)
            return [self._throttling]
        more = tuple(dict.fromkeys((*event.reasons, *reasons)))
        self._throttling = event.replace(until=None, reasons=more, severity="")  # as bad as the worst of them
        return [] if more == event.reasons else [self._throttling]

    def _compare_processes(self, gpu: Gpu, time: float, ended: dict[float, _Ended]) -> list[Event]:
        present = {process.pid: process for process in gpu.all_processes() if process.pid is not None}
        first = self._held is None
        held = self._held = {} if self._held is None else self._held
        elapsed, self._listed = time - self._listed, time
        gone_pids = [
            pid for pid, one in held.items() if pid not in present or is_another(one.process, present[pid], elapsed)
        ]
        for pid in sorted(gone_pids):
            gone = held.pop(pid)
            end = ended.setdefault(pid, _Ended(gone.process))
            end.gpus.append(self.label)
            end.uuids += [self.uuid] if self.uuid else []
            end.peak = end.peak if gone.peak is None else (end.peak or 0.0) + gone.peak
            end.ran_out = gone.ran_out(gpu.memory_total) if end.ran_out is None else end.ran_out
        found = []
        for pid, process in present.items():
            if pid not in held:
                held[pid] = _Held(process)
                if not first:
                    found.append(self.event(time, "process-start", process=process))
            held[pid].add(process, gpu, time)
        return found


def _joined(events: list[Event]) -> list[Event]:
    """Make one event of a process that starts on several GPUs at once."""
    kept: list[Event] = []
    started: dict[float | None, int] = {}
    for event in events:
        if event.kind == "process-start" and event.process is not None:
            if (at := started.get(event.process.pid)) is not None:
                same = kept[at]
                kept[at] = same.replace(gpus=same.gpus + event.gpus, uuids=same.uuids + event.uuids)
                continue
            started[event.process.pid] = len(kept)
        kept.append(event)
    return kept


_LEAP = 5.0  # seconds by which wall clock and monotonic clock must part to be worth an event


class RecordedClock:
    """Finds in the times of snapshots alone where the clock was set back; set forward, it looks like a gap. For one thread."""

    def __init__(self) -> None:
        self._before: float | None = None
        self._apart = 0.0  # seconds between the two snapshots before

    def observe(self, time: float) -> list[Event]:
        """Return a change of the clock, with the seconds it was set forward, which are negative."""
        before, self._before = self._before, time
        if before is None:
            return []
        if time >= before:
            self._apart = time - before
            return []
        leap = time - before - self._apart
        return [Event(time, "clock", value=leap)] if leap < -_LEAP else []


class ClockWatch(RecordedClock):
    """Compares the time of each snapshot with the monotonic clock. For one thread."""

    def __init__(self, clock: SystemClock | None = None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._last: tuple[float, float, float] | None = None  # time, monotonic and asleep at the last snapshot

    def observe(self, time: float) -> list[Event]:
        """Return a suspend, with its seconds as `value`, or a change of the clock, with the seconds it was set forward."""
        now, asleep = self._clock.monotonic(), self._clock.asleep()
        before, self._last = self._last, (time, now, asleep)
        if before is None:
            return []
        passed, elapsed, slept = time - before[0], now - before[1], asleep - before[2]
        found = [Event(time, "suspend", value=slept)] if slept > _LEAP else []
        leap = passed - elapsed - slept
        return [*found, Event(time, "clock", value=leap)] if abs(leap) > _LEAP else found
