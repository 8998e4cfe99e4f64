"""Events: what happened to GPUs and their processes between samples, one value each, for lists and for counts."""

from __future__ import annotations

from .tally import HARMLESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.catalog import Gpu, Process
    from ..model.snapshot import Snapshot

# How bad each kind is; the order of the kinds is the order of events of one moment.
SEVERITY = {
    "lost": "critical",
    "timeout": "critical",
    "xid": "critical",
    "memory-errors": "critical",
    "out-of-memory": "warn",
    "throttled": "warn",
    "gap": "warn",
    "removed": "warn",
    "added": "good",
    "back": "good",
    "asleep": "label",
    "process-end": "label",
    "process-start": "label",
}
_CALM = 10.0  # seconds without a reason before a GPU counts as no longer throttled: some come and go every second
_FULL = 97.0  # per cent of memory in use at which a process that ends has probably run out of it
_RECENT = 5.0  # seconds before its end in which the memory of a process is looked at
_STEEP = 0.25  # part of all the memory; a process that ends just after such a rise has probably asked for more than there was


class Event:
    """Something that happened at `time`; what lasts has `until`, None while it goes on.

    `gpus` are the numbers of the GPUs (the position of one that has none), `process` who it is about, `reasons` why (throttling),
    `value` an XID code, a count of errors, or the bytes a process had when its memory ran out. Texts in it are as processes and
    drivers gave them.
    """

    __slots__ = ("gpus", "kind", "process", "reasons", "time", "until", "value")

    def __init__(
        self,
        time: float,
        kind: str,
        gpus: Iterable[str] = (),
        *,
        process: Process | None = None,
        reasons: Iterable[str] = (),
        value: float | None = None,
        until: float | None = None,
    ) -> None:
        self.time = time
        self.kind = kind
        self.gpus = tuple(gpus)
        self.process = process
        self.reasons = tuple(reasons)
        self.value = value
        self.until = until

    @property
    def severity(self) -> str:
        """How bad it is: critical, warn, good or label."""
        return SEVERITY[self.kind]

    def __repr__(self) -> str:
        return f"Event({self.time!r}, {self.kind!r}, {self.gpus!r})"


class EventDetector:
    """Compares each sample with those before. A process that is there at the first sample, or with a new GPU, has not started just now."""

    def __init__(self) -> None:
        self._gpus: dict[str, _WatchedGpu] = {}
        self._began = False

    def observe(self, snapshot: Snapshot) -> list[Event]:
        """Return what happened since the sample before, the worst first.

        A throttling is returned when it begins and gets its `until` at a later sample.
        """
        found: list[Event] = []
        ended: dict[float, _Ended] = {}
        there = set()
        for at, gpu in enumerate(snapshot.gpus):
            name = gpu.uuid or f"at {at}"
            there.add(name)
            if name not in self._gpus:
                self._gpus[name] = _WatchedGpu(_label(gpu, at))
                if self._began:
                    found.append(Event(snapshot.time, "added", (_label(gpu, at),)))
            found += self._gpus[name].compare(gpu, snapshot.time, ended)
        for name in self._gpus.keys() - there:
            found.append(Event(snapshot.time, "removed", (self._gpus.pop(name).label,)))
        self._began = True
        found = _joined(found) + [end.event(snapshot.time) for end in ended.values()]
        order = tuple(SEVERITY)
        return sorted(found, key=lambda event: order.index(event.kind))


class _Ended:
    """A process that is gone from some GPUs at one sample."""

    __slots__ = ("gpus", "process", "ran_out")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.gpus: list[str] = []
        self.ran_out: float | None = None

    def event(self, time: float) -> Event:
        kind = "process-end" if self.ran_out is None else "out-of-memory"
        return Event(time, kind, self.gpus, process=self.process, value=self.ran_out)


class _Held:
    """The memory of one process on one GPU in its last seconds, and how full the GPU was."""

    __slots__ = ("process", "recent")

    def __init__(self) -> None:
        self.process: Process | None = None
        self.recent: list[tuple[float, float, float]] = []

    def add(self, process: Process, gpu: Gpu, time: float) -> None:
        self.process = process
        if process.memory_used is not None:
            self.recent.append((time, process.memory_used, gpu.memory_percent or 0.0))
            while self.recent[0][0] < time - _RECENT:
                del self.recent[0]

    def ran_out(self, total: float | None) -> float | None:
        """Return the bytes it held at most when it seems to have run out of memory, else None."""
        if not self.recent:
            return None
        most = max(held for _, held, _ in self.recent)
        rise = most - self.recent[0][1]
        full = any(percent >= _FULL for _, _, percent in self.recent)
        return most if full or (total is not None and rise >= _STEEP * total) else None


class _WatchedGpu:
    """What the samples until now said of one GPU."""

    __slots__ = ("_errors", "_held", "_reasons_seen", "_state", "_throttling", "_xid", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self._state = "ok"
        self._xid: float | None = None
        self._errors: float | None = None
        self._throttling: Event | None = None
        self._reasons_seen = 0.0
        self._held: dict[float, _Held] | None = None

    def compare(self, gpu: Gpu, time: float, ended: dict[float, _Ended]) -> list[Event]:
        found: list[Event] = []
        if gpu.state != self._state:
            self._state = gpu.state
            found.append(Event(time, "back" if gpu.state == "ok" else gpu.state, (self.label,), value=gpu.xid_last))
        if gpu.xid_last is not None and gpu.xid_last != self._xid:
            self._xid = gpu.xid_last
            found.append(Event(time, "xid", (self.label,), value=gpu.xid_last))
        if (errors := gpu.ecc_uncorrected) is not None:
            if self._errors is not None and errors > self._errors:
                found.append(Event(time, "memory-errors", (self.label,), value=errors - self._errors))
            self._errors = errors
        found += self._throttle(gpu, time)
        if gpu.state == "ok" and "processes" not in gpu.gaps:
            found += self._processes(gpu, time, ended)
        return found

    def _throttle(self, gpu: Gpu, time: float) -> list[Event]:
        reasons = [reason for reason in gpu.throttle_reasons or () if reason not in HARMLESS]
        event = self._throttling
        if event is not None and not reasons:
            event.until = self._reasons_seen
            if not 0 <= time - self._reasons_seen < _CALM:
                self._throttling = None
        if not reasons:
            return []
        self._reasons_seen = time
        if event is not None and self._throttling is event:
            event.until = None
            event.reasons = tuple(dict.fromkeys((*event.reasons, *reasons)))
            return []
        self._throttling = Event(time, "throttled", (self.label,), reasons=reasons)
        return [self._throttling]

    def _processes(self, gpu: Gpu, time: float, ended: dict[float, _Ended]) -> list[Event]:
        there = {process.pid: process for process in gpu.all_processes() if process.pid is not None}
        first = self._held is None
        held = self._held = {} if self._held is None else self._held
        for pid in held.keys() - there.keys():
            gone = held.pop(pid)
            assert gone.process is not None
            end = ended.setdefault(pid, _Ended(gone.process))
            end.gpus.append(self.label)
            end.ran_out = gone.ran_out(gpu.memory_total) if end.ran_out is None else end.ran_out
        found = []
        for pid, process in there.items():
            if pid not in held:
                held[pid] = _Held()
                if not first:
                    found.append(Event(time, "process-start", (self.label,), process=process))
            held[pid].add(process, gpu, time)
        return found


def _joined(events: list[Event]) -> list[Event]:
    """Make one event of a process that starts on several GPUs at once."""
    kept: list[Event] = []
    started: dict[float | None, Event] = {}
    for event in events:
        if event.kind == "process-start" and event.process is not None:
            if (same := started.get(event.process.pid)) is not None:
                same.gpus += event.gpus
                continue
            started[event.process.pid] = event
        kept.append(event)
    return kept


def _label(gpu: Gpu, at: int) -> str:
    return f"{gpu.index if gpu.index is not None else at:.0f}"
