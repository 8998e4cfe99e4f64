"""Diagnosis over time: of any length in bounded memory, live for the last minute, and with the waits a program knows of."""

from __future__ import annotations

from ...model.catalog import DOWN
from ...model.identity import GpuIdentities, key_of, rename
from ...model.verdict import Diagnosis, Evidence, Holder, Verdict, total_budget
from ...value import Value, fresh
from .outage import METRICS, aged, whole_outage, with_seconds
from .window import WindowBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ...model.catalog import Process
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.verdict import Budget

_SECONDS = 300.0  # of one window
_SAMPLES = 300  # that a window has at least, where samples are rarer than one a second
_MOST = 1500  # samples of one window
_OVERLAP = 8.0  # seconds kept for the next window, so that what happens at its edge is seen
# Which verdict an event is, where the samples themselves may have been averaged away, and its evidence.
_EVENTS = {
    "lost": ("lost", "state_lost"),
    "timeout": ("driver_unresponsive", "state_timeout"),
    "xid": ("xid", "xid_last"),
    "memory-errors": ("memory_errors", "ecc_uncorrected"),
    "out-of-memory": ("out_of_memory", "process_memory"),
}
_SILENT = {state: _EVENTS[state] for state in DOWN}
_NOTHING = frozenset({"idle", "unknown", "starting", "loading"})


def diagnosis_of(snapshots: Iterable[Snapshot]) -> Diagnosis:
    """Judge every GPU of snapshots given in the order of time, however many there are."""
    running = RunningDiagnosis()
    for snapshot in snapshots:
        running.add(snapshot)
    return running.diagnosis()


class RunningDiagnosis:
    """Judges samples handed over in the order of time, in bounded memory. For one thread."""

    def __init__(self) -> None:
        self._builder = WindowBuilder()
        self._found: dict[str, _Found] = {}
        self._start: float | None = None
        self._end = 0.0
        self._samples = 0
        self._flushed = False
        self._own: set[int] = set()
        self._identities = GpuIdentities()
        self._spells: dict[tuple[str, str], list[tuple[float, float | None]]] = {}  # of outages, by GPU and verdict

    def add(self, snapshot: Snapshot, program: Process | None = None, own: Collection[int] | None = None) -> None:
        """Take a snapshot; `program` is what is known of the process that watches its own GPUs, `own` are the PIDs of all of it.

        With `own`, the program is judged; what others do on its GPUs counts as theirs.
        """
        builder, time = self._builder, snapshot.time
        long = builder.samples >= _SAMPLES and time - builder.start >= _SECONDS
        if builder.samples and (time < self._end or builder.samples >= _MOST or long):
            self._flush(time)
        self._start = time if self._start is None else self._start
        self._end = time
        self._samples += 1
        self._note_outages(snapshot)
        if own is not None:
            self._own |= set(own)
            self._builder.own = frozenset(self._own)
        self._builder.add(snapshot, program)

    def note(self, events: Iterable[Event]) -> None:
        """Take events that samples may not show: those of a history whose samples have been averaged."""
        for event in events:
            if event.kind in _EVENTS and not event.rule:
                for uuid, label in zip(event.uuids, event.gpus, strict=False):
                    self._found.setdefault(uuid, _Found()).note(_verdict_of(event, uuid, label))

    def diagnosis(self) -> Diagnosis:
        """Return what was found until now; more may be added."""
        from .judge import judge  # the rules take 15 ms to load, which a program that only collects does not pay

        last = judge(self._builder)
        start = self._end if self._start is None else self._start
        if not self._flushed and not self._found:
            return last
        found = {uuid: one.copy() for uuid, one in self._found.items()}
        for verdict in last:
            found.setdefault(key_of(verdict.uuid, verdict.index), _Found()).add(verdict)
        verdicts = [self._with_outages(one.verdict()) for one in found.values() if one.parts]
        verdicts.sort(key=lambda one: (one.index is None, one.index or 0))
        return Diagnosis(verdicts, start, self._end, self._samples)

    def _note_outages(self, snapshot: Snapshot) -> None:
        """Keep when GPUs were lost or silent: windows overlap, and an outage may be longer than a window."""
        names = self._identities.keys(snapshot.gpus)
        for kept in (self._found, self._spells):
            rename(kept, self._identities.renamed)
        for name, gpu in zip(names, snapshot.gpus, strict=True):
            for state, (key, _) in _SILENT.items():
                spells, lasts = self._spells.get((name, key)), gpu.state == state
                began = snapshot.time if gpu.since is None else min(gpu.since, snapshot.time)
                if spells is None or spells[-1][1] is not None:
                    if lasts:
                        self._spells.setdefault((name, key), []).append((began, None))
                elif not lasts:
                    spells[-1] = (spells[-1][0], snapshot.time)

    def _with_outages(self, verdict: Verdict) -> Verdict:
        """Return a verdict that, with what was seen beside it, says for how long the GPU told nothing in all windows."""
        if not self._spells:
            return verdict
        name = key_of(verdict.uuid, verdict.index)
        return self._outage(verdict, name).replace(also=[self._outage(one, name) for one in verdict.also])

    def _outage(self, verdict: Verdict, name: str) -> Verdict:
        spells = self._spells.get((name, verdict.key))
        if not spells:
            return verdict
        outage = whole_outage(spells, self._end)
        values = {**verdict.values, "start_time": outage.start, "end_time": outage.end}
        if verdict.key == "driver_unresponsive":
            values["kind"] = "now" if outage.end is None else "recovered"
        return with_seconds(verdict, outage.seconds).replace(values=values)

    def _flush(self, time: float) -> None:
        """Judge the window and begin the next one with its last seconds."""
        from .judge import judge

        for verdict in judge(self._builder):
            self._found.setdefault(key_of(verdict.uuid, verdict.index), _Found()).add(verdict)
        self._flushed = True
        if time < self._end:  # the clock was set back
            self._builder = WindowBuilder()
        else:
            self._builder.drop_before(time - _OVERLAP)
            self._builder.samples = 0


class _Found(Value):
    """What was found on one GPU: verdicts by key, with the seconds in which each applied."""

    parts: dict[str, tuple[float, Verdict]] = fresh(factory=dict)
    seconds: float = 0.0
    budgets: list[Budget] = fresh(factory=list)

    def copy(self) -> _Found:
        other = _Found()
        other.parts, other.seconds, other.budgets = dict(self.parts), self.seconds, [*self.budgets]
        return other

    def add(self, verdict: Verdict) -> None:
        """Add the verdict of a window."""
        seconds = max(verdict.end - verdict.start, 1e-6)
        if verdict.key not in _NOTHING:
            self.seconds += seconds
        if verdict.budget is not None:
            known = total_budget([*self.budgets, verdict.budget])
            self.budgets = [] if known is None else [known]
        for one in (verdict, *verdict.also):
            self._put(one.replace(also=(), budget=None), seconds * one.share)

    def note(self, verdict: Verdict) -> None:
        """Add what an event tells; samples that tell the same are more precise and stay."""
        if verdict.key not in self.parts:
            self.parts[verdict.key] = (0.0, verdict)

    def _put(self, verdict: Verdict, seconds: float) -> None:
        before = self.parts.get(verdict.key)
        if before is None:
            self.parts[verdict.key] = (seconds, verdict)
            return
        spent, known = before
        longer = verdict if seconds >= known.end - known.start else known
        merged = longer.replace(start=min(known.start, verdict.start), end=max(known.end, verdict.end))
        if verdict.key == "memory_leak":
            merged = merged.replace(values={**verdict.values, "grown": _grown(known) + _grown(verdict)})
        self.parts[verdict.key] = (spent + seconds, merged)

    def verdict(self) -> Verdict:
        """Return the ranked verdict of all windows."""
        from .judge import ranked

        worked = [key for key in self.parts if key not in _NOTHING]
        spent = self.seconds if worked else sum(seconds for seconds, _ in self.parts.values())
        shares = [
            verdict.replace(share=min(1.0, seconds / spent) if spent > 0 else 0.0)
            for key, (seconds, verdict) in self.parts.items()
            if key in worked or not worked
        ]
        return ranked(shares).replace(budget=total_budget(self.budgets))


def _grown(verdict: Verdict) -> float:
    value = verdict.values.get("grown")
    return float(value) if isinstance(value, (int, float)) else 0.0


def _verdict_of(event: Event, uuid: str, label: str) -> Verdict:
    """Return an event as a verdict, with the evidence the words need."""
    from .rules import BY_KEY

    key, metric = _EVENTS[event.kind]
    until = event.time if event.until is None else event.until
    value = max(0.0, until - event.time) if event.kind in DOWN else event.value
    numbers = [Evidence(metric, value)] if value is not None else []
    kind = "recovered" if event.kind == "timeout" else ""
    process = event.process
    holders = []
    if process is not None:
        pid = None if process.pid is None else int(process.pid)
        holders = [Holder(pid, process.name or "", process.user or "", memory=event.value)]
    return Verdict(
        key,
        "high" if key != "out_of_memory" else "medium",
        numbers,
        advice=BY_KEY[key].advice,
        index=int(label) if label.isdecimal() else None,
        uuid=uuid,
        processes=holders,
        start=event.time,
        end=until,
        values={
            "kind": kind,
            "xid": event.value if event.kind in ("xid", "lost") else None,
            "end_time": event.until,
            "start_time": event.time,
        },
    )


WINDOW = 60.0  # seconds that are judged together
EVERY = 10.0  # seconds from judgement to judgement
SOON = 5.0  # the same while a program is new
_NEW = 30.0  # seconds
_AT_ONCE = 1.0  # seconds; when a GPU fails or its program ends, what was found before is old
_FIRST = 8.0  # seconds of samples before the first judgement
_PASSING = frozenset({"unknown", "starting", "loading"})  # no news
_MOST_LIVE = 240  # samples per window; faster sampling is thinned to this, since more of them tell no more


class _Course(Value):
    """The verdicts of one GPU over time: the last one, whom it was about, since when it holds, and the one that was told last."""

    key: str = ""
    pids: frozenset[int | None] = frozenset()
    since: float = 0.0
    told: str = "idle"  # a first one is no news


class LiveDiagnosis:
    """Adding a snapshot costs the same however long it runs. `latest` is the last judgement and may be read by any thread.

    Outages in it last until the last snapshot.

    `changes` are the verdicts that the last judgement confirmed as new: a verdict counts once two judgements in a row agree, so
    that one which comes and goes is told once.
    """

    def __init__(self, window: float = WINDOW, every: float = EVERY) -> None:
        self.latest = Diagnosis()
        self._window = window
        self._every = every
        self._builder = WindowBuilder()
        self._judged: float | None = None
        self._before: float | None = None
        self._down: frozenset[tuple[int, str]] = frozenset()  # positions and states of GPUs that tell nothing
        self._changed = 0.0  # when another program began on any GPU
        self._urgent = False  # whether what was found last is old
        self._courses: dict[tuple[str, str], _Course] = {}
        self.changes: list[Verdict] = []

    def add(self, snapshot: Snapshot) -> bool:
        """Take a snapshot; return whether there is a new judgement."""
        self.changes = []
        time, before = snapshot.time, self._before
        if before is not None and not 0 <= time - before < self._window:  # the clock was set, or the machine slept
            self._builder, self._judged, before = WindowBuilder(), None, None
            for course in self._courses.values():
                course.key = ""
        down = frozenset((at, gpu.state) for at, gpu in enumerate(snapshot.gpus) if gpu.state in DOWN)
        self._urgent |= down != self._down
        self._down = down
        if before is not None and time - before < 0.9 * self._window / _MOST_LIVE:
            self._age(time)
            return False
        self._before = time
        self._builder.add(snapshot)
        rename(self._courses, self._builder.identities.renamed)
        for name in self._builder.changed():  # what the program before did says nothing of this one
            self._builder.cut(name, time)
            self._changed, self._urgent = time, True
        if self._judged is None:
            self._judged = time - self._every + _FIRST
        due = SOON if time - self._changed < _NEW else self._every
        if time - self._judged < (_AT_ONCE if self.latest.samples and self._urgent else due):
            self._age(time)
            return False
        self._judged, self._urgent = time, False
        from .judge import judge  # loads all rules

        self._builder.drop_before(time - self._window)
        found = judge(self._builder)
        self.latest = Diagnosis([self._followed(one) for one in found], found.start, found.end, found.samples)
        return True

    def _age(self, time: float) -> None:
        """Let outages go on between two judgements."""
        if self._down and self.latest.samples:
            self.latest = self.latest.replace(verdicts=[aged(one, time) for one in self.latest])

    def _followed(self, verdict: Verdict) -> Verdict:
        """Return a verdict that says since when it holds, and note it in `changes` if it is confirmed and not told yet."""
        course = self._courses.setdefault((key_of(verdict.uuid, verdict.index), verdict.instance), _Course())
        now = frozenset(one.pid for one in verdict.processes)
        confirmed = course.key == verdict.key
        if not confirmed or (course.pids and now and course.pids.isdisjoint(now)):
            course.since = verdict.start
        began = verdict.values.get("start_time")
        if verdict.key in METRICS and isinstance(began, (int, float)):
            course.since = began
        course.key, course.pids = verdict.key, now
        verdict = verdict.replace(since=course.since)
        if confirmed and verdict.key not in _PASSING and verdict.key != course.told:
            course.told = verdict.key
            self.changes.append(verdict)
        return verdict

    def verdict(self, uuid: str | None) -> Verdict | None:
        """Return the last verdict of a GPU or MIG instance, None while there is none."""
        return next((one for one in self.latest if one.uuid == uuid), None)


TOLD = 10.0  # percent of the time from which waiting is worth telling
MUCH = 20.0  # percent from which it is the cause where nothing else is; TensorFlow's profiler calls that high
_INPUT = ("input_bound_cpu", "host_bound", "input_bound_io")
_OPEN = ("unknown", "waiting", "underused", "idle_allocation")


def with_wait(diagnosis: Diagnosis, share: float) -> Diagnosis:
    """Return a diagnosis that knows for how many percent of the time the program waited for data."""
    if share < TOLD:
        return diagnosis
    verdicts = [_with_wait(verdict, share) for verdict in diagnosis]
    return Diagnosis(verdicts, diagnosis.start, diagnosis.end, diagnosis.samples)


def _with_wait(verdict: Verdict, share: float) -> Verdict:
    told = Evidence("data_wait", round(share, 1), TOLD if share < MUCH else MUCH, "above")
    if verdict.key in _INPUT:
        return verdict.replace(confidence="high", evidence=(told, *verdict.evidence))
    if verdict.key in _OPEN and share >= MUCH:
        from .rules import BY_KEY

        # that it waited for data is certain; storage would need evidence of its own
        return verdict.replace(
            key="input_bound_io",
            confidence="medium",
            evidence=(told, *verdict.evidence),
            advice=(*BY_KEY["host_bound"].advice[:1], *BY_KEY["input_bound_io"].advice),
            values={"kind": "data"},
        )
    return verdict
