"""Live diagnosis: fed with snapshots one by one, judges the last minute again every few seconds, from the start of each program."""

from __future__ import annotations

from ...model.verdict import Diagnosis
from .judge import judge
from .window import WindowBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.snapshot import Snapshot
    from ...model.verdict import Verdict

WINDOW = 60.0  # seconds that are judged together
EVERY = 10.0  # seconds from judgement to judgement
SOON = 5.0  # the same while a program is new
_NEW = 30.0  # seconds
_AT_ONCE = 1.0  # seconds; when a GPU fails or its program ends, what was found before is old
_FIRST = 8.0  # seconds of samples before the first judgement
_PASSING = frozenset({"unknown", "starting", "loading"})  # no news
_MOST = 240  # samples per window; faster sampling is thinned to this, since more of them tell no more


class LiveDiagnosis:
    """Adding a snapshot costs the same however long it runs. `latest` is the last judgement and may be read by any thread.

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
        self._down: frozenset[str | None] = frozenset()
        self._changed = 0.0  # when another program began on any GPU
        self._seen: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._held: dict[str, tuple[str, frozenset[int | None], float]] = {}
        self.changes: list[Verdict] = []

    def add(self, snapshot: Snapshot) -> bool:
        """Take a snapshot; return whether there is a new judgement."""
        self.changes = []
        time, before = snapshot.time, self._before
        if before is not None and not 0 <= time - before < self._window:  # the clock was set, or the machine slept
            self._builder, self._judged, before = WindowBuilder(), None, None
            self._seen = {}
        if before is not None and time - before < 0.9 * self._window / _MOST:
            return False
        self._before = time
        self._builder.add(snapshot)
        for name in self._builder.changed():  # what the program before did says nothing of this one
            self._builder.cut(name, time)
            self._changed = time
        down = frozenset(gpu.uuid for gpu in snapshot.gpus if gpu.state in ("lost", "timeout"))
        turned, self._down = down != self._down, down
        if self._judged is None:
            self._judged = time - self._every + _FIRST
        due = SOON if time - self._changed < _NEW else self._every
        if self.latest.samples and (turned or self._changed == time):
            due = _AT_ONCE
        if time - self._judged < due:
            return False
        self._judged = time
        self._builder.drop_before(time - self._window)
        self.latest = self._since(judge(self._builder))
        self.changes = [verdict for verdict in self.latest if self._is_new(verdict)]
        return True

    def _since(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return a diagnosis whose verdicts say since when they hold: as long as judgements agreed and the program stayed."""
        verdicts = []
        for verdict in diagnosis:
            name = verdict.uuid or f"{verdict.index} {verdict.instance}"
            key, pids, since = self._held.get(name, ("", frozenset(), 0.0))
            now = frozenset(one.pid for one in verdict.processes)
            if key != verdict.key or (pids and now and pids.isdisjoint(now)):
                since = verdict.start
            self._held[name] = (verdict.key, now, since)
            verdicts.append(verdict.replace(since=since))
        return Diagnosis(verdicts, diagnosis.start, diagnosis.end, diagnosis.samples)

    def _is_new(self, verdict: Verdict) -> bool:
        """Tell whether a verdict that is not unknown has been confirmed and not told before; a first `idle` is no news."""
        name, key = verdict.uuid or f"{verdict.index}", verdict.key
        before, self._seen[name] = self._seen.get(name), key
        told = self._told.get(name, "idle")
        if key in _PASSING or key != before or key == told:
            return False
        self._told[name] = key
        return True

    def verdict(self, uuid: str | None) -> Verdict | None:
        """Return the last verdict of a GPU or MIG instance, None while there is none."""
        return next((one for one in self.latest if one.uuid == uuid), None)
