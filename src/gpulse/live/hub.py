"""The hub: judges each snapshot, turns it into bytes once, and keeps the last minutes of them for its listeners."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial

from ..analysis.diagnosis.running import LiveDiagnosis
from ..analysis.events import ClockWatch, EventDetector
from ..model.catalog import DOWN, EVIDENCE
from ..model.identity import GpuIdentities
from ..model.select import EVERYTHING, Wanted
from ..present.program import running_text
from ..present.verdicts import QUIET, verdict_event, verdict_row
from ..sampling.bus import Bus
from . import wire
from .wire import StreamLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from ..analysis.alerts import Transition
    from ..delivery.alerts import Alerts
    from ..model.event import Event
    from ..model.snapshot import Problem, Snapshot
    from ..model.verdict import Diagnosis
    from ..monitor.presence import Presence
    from ..sampling.sampler import Sampler
    from ..store.history import Recorder

_PROCESSES_EVERY = 5.0  # seconds between two lists of processes


def wanted(commands: bool = True, more: Wanted | None = None) -> Wanted:
    """Return what is sampled for everybody: all but the details, processes too; command lines only where they may be shown."""
    asked = EVERYTHING | Wanted(EVIDENCE)
    if more is not None:
        asked |= more
    return asked if commands else asked.without_commands()


class Hub(StreamLog):
    """One sampler for all clients. The caller that made it starts and closes it, and closes the sampler.

    `conceal` maps each snapshot to what clients may see; without it, `commands` says whether command lines are kept.
    `watchers` are called with every snapshot in the hub's own thread, `keep` with every snapshot and what happened at it; one that
    raises is told to `failed`, once for each message. `recorder` keeps them in a history, and what is wrong with that is a problem.
    `details` are the metrics of that group which the sampler reads.
    `latest`, `after` and `greeting` may be called by any thread and never wait for a driver or a disk.
    """

    def __init__(
        self,
        sampler: Sampler | None,
        interval: float,
        *,
        commands: bool = True,
        watchers: Iterable[Callable[[Snapshot], None]] = (),
        alerts: Alerts | None = None,
        keep: Callable[[Snapshot, Sequence[Event]], None] | None = None,
        recorder: Recorder | None = None,
        failed: Callable[[Exception], None] | None = None,
        conceal: Callable[[Snapshot], Snapshot] | None = None,
        details: Collection[str] = (),
    ) -> None:
        super().__init__(interval)
        self.commands = commands
        self.details = frozenset(details)
        self._conceal = conceal or (None if commands else wire.without_commands)
        self.alerts = alerts
        self._identities = GpuIdentities() if alerts is None else alerts.gpus
        self._recorder = recorder
        self._keep = keep if recorder is None else recorder.put
        self.events = EventLog()
        # what programs of this computer say of themselves belongs to no simulated machine, and names files and functions
        self.real = sampler is None or sampler.source.machine.real
        self.tells_programs = self.real and (commands or conceal is not None)
        self.verdicts = Verdicts(self.tells_programs)
        self.problems: list[dict[str, Any]] = []  # what is wrong now, the worst first
        self.latest: Snapshot | None = None
        self.idle_interval: float | None = None  # seconds between samples of the history without clients
        self._watchers = [*watchers]
        self._failed = failed
        self._processes = b""
        self._alerts_told: list[dict[str, Any]] = []
        self._processes_at = float("-inf")
        self._bus = None if sampler is None else Bus(sampler, interval, failed)
        self._thread = threading.Thread(target=self._run, name="gpulse-hub", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        if self._bus is not None:
            self._subscription = self._bus.subscribe(8)
            self._thread.start()
            self._bus.start()

    def close(self) -> None:
        """Stop, and tell those who listen; returns soon even when the driver hangs."""
        self.over = True
        if self._bus is not None:
            self._bus.close()
        if self._thread.is_alive():
            self._thread.join(1.0)
        self._tell()

    def pace(self, interval: float | None) -> None:
        """Sample at another interval from now on; None pauses. The caller sets `interval`, which clients are told."""
        if self._bus is not None:
            self._bus.pace(interval)

    def refresh(self, patience: float) -> None:
        """Take a sample now, even if sampling is paused, and wait at most `patience` seconds for it."""
        number = self.number
        if self._bus is not None:
            self._bus.hasten()
        with self._arrived:
            self._arrived.wait_for(lambda: self.number != number or self.over, patience)

    @property
    def took(self) -> float | None:
        """Seconds that the latest sample took; None before the first."""
        return None if self._bus is None else self._bus.took

    @property
    def trouble(self) -> str:
        """Why it is not ready to be asked: no fresh sample, or no GPU responds; empty if it is."""
        gpus = () if self.latest is None else self.latest.gpus
        silent = bool(gpus) and all(gpu.state in DOWN for gpu in gpus)
        return "no GPU responds." if silent else super().trouble

    @property
    def unready(self) -> str:
        """Why it does not do all that it should: it cannot be asked, or its history cannot be written; empty if it does."""
        return self.trouble or next((problem.message for problem in self._unrecorded), "")

    @property
    def _unrecorded(self) -> Sequence[Problem]:
        """What keeps the history from being written now."""
        return self._recorder.problems[-1:] if self._recorder is not None and not self._recorder.writable else ()

    def concealed(self, snapshot: Snapshot) -> Snapshot:
        """Return what clients may see of a snapshot."""
        return snapshot if self._conceal is None else self._conceal(snapshot)

    def add(self, snapshot: Snapshot) -> None:
        """Take a snapshot: hand it to the watchers, make its text, wake those who listen."""
        snapshot = self.concealed(self._identities.recognized(snapshot))
        for watcher in self._watchers:
            self._guarded(watcher, snapshot)
        events = self.events.observe(snapshot)
        before, runs = self.verdicts.latest, self.verdicts.runs
        judged = self._guarded(self.verdicts.add, snapshot) or []
        self.events.keep(judged)
        events += judged
        turned = [] if self.alerts is None else self._guarded(self.alerts.add, snapshot) or []
        decided = [] if self.alerts is None else self.alerts.decided()
        events += decided
        self.events.keep([*decided, *(alert.event for alert in turned)])
        if self._keep is not None:
            self._keep(snapshot, [*events, *(alert.event for alert in turned)])
        text = [wire.message("event", wire.event(event)) for event in events]
        text += [wire.message("alert", wire.alert(alert)) for alert in turned]
        text += self._alert_news(turned)
        is_judged = self.verdicts.latest is not before
        text += [wire.message("verdicts", self.verdicts.found)] if is_judged else []
        text += [wire.message("runs", self.verdicts.runs)] if self.verdicts.runs != runs and not is_judged else []
        text += self._guarded(partial(self._problem_news, is_judged), snapshot) or []
        if not 0 <= snapshot.time - self._processes_at < _PROCESSES_EVERY:
            self._processes_at = snapshot.time
            self._processes = wire.message("processes", wire.processes(snapshot))
            text.append(self._processes)
        # the id comes last: who was cut off before it is given all of this again
        text.append(wire.message("sample", wire.sample(snapshot, self.verdicts.latest), self._next_id()))
        self._append(snapshot.time, b"".join(text), lambda: setattr(self, "latest", snapshot))

    def _alert_news(self, turned: Sequence[Transition]) -> list[bytes]:
        """Return a message with the active alerts if only their values have changed; a turn has a message of its own."""
        active = self.active_alerts()
        before, self._alerts_told = self._alerts_told, [{**alert, "last_true": None} for alert in active]
        return [] if turned or self._alerts_told == before else [wire.message("alerts", active)]

    def active_alerts(self) -> list[dict[str, Any]]:
        """Return the active alerts as clients see them, with what people decided about each."""
        alerts, now = self.alerts, 0.0 if self.latest is None else self.latest.time
        return [] if alerts is None else [wire.alert(one) | alerts.standing(one, now) for one in alerts.active]

    def _problem_news(self, judged: bool, snapshot: Snapshot) -> list[bytes]:
        """Return a message with what is wrong now if that has changed; what it costs grows, and is told with each judgement."""
        active = () if self.alerts is None else self.alerts.active
        standing = None if self.alerts is None else self.alerts.standing
        found = wire.problems(self.verdicts.latest, active, snapshot.time, standing)
        before, self.problems = self.problems, [*wire.history_problems(self._unrecorded, snapshot.time), *found]
        same = wire.same_problems(self.problems, before)
        return [] if same and not (judged and self.problems) else [wire.message("problems", self.problems)]

    def _before_latest(self) -> bytes:
        return self._processes

    def _run(self) -> None:
        for snapshot in self._subscription:
            self._guarded(self.add, snapshot)

    def _guarded(self, call: Callable[[Snapshot], Any], snapshot: Snapshot) -> Any:
        """Call; a mistake in one part must not end what all others see."""
        try:
            return call(snapshot)
        except Exception as error:  # noqa: BLE001
            self._report(error, self._failed)
            return None


_KEPT_EVENTS = 500  # events in memory


class EventLog:
    """The detector of the server's events, and the last of them. Written by the hub's thread; `between` is for any thread."""

    def __init__(self) -> None:
        self._detector = EventDetector(ClockWatch())
        self._kept: deque[Event] = deque(maxlen=_KEPT_EVENTS)

    def observe(self, snapshot: Snapshot) -> list[Event]:
        """Return what happened between the snapshot before and this one, and keep it."""
        found = self._detector.observe(snapshot)
        self.keep(found)
        return found

    def keep(self, events: Iterable[Event]) -> None:
        """Keep events; one that was kept before, without its end, is replaced."""
        for event in events:
            if event.until is not None:
                self._kept = deque((kept for kept in self._kept if kept.key != event.key), maxlen=_KEPT_EVENTS)
            self._kept.append(event)

    def between(self, start: float, end: float) -> list[Event]:
        """Return the events of a time range, oldest first."""
        return sorted((event for event in [*self._kept] if start <= event.time < end), key=lambda event: event.time)


_RUNS_EVERY = 2.0  # seconds between two questions to Monitors
_NO_RUNS: dict[str, list[Any]] = {"code": [], "runs": [], "pids": []}


def _runs(snapshot: Snapshot) -> dict[str, dict[str, list[Any]]]:
    """Return what Monitors in the processes of each GPU tell their own user: lines of code that keep it waiting, and their runs."""
    from ..model.stacks import CodeLine
    from ..monitor.presence import presences
    from ..present.code import advised

    told: dict[int, Presence] = presences()
    found: dict[str, dict[str, list[Any]]] = {}
    for gpu in snapshot.gpus if told else ():
        pids = dict.fromkeys(int(process.pid or 0) for process in gpu.all_processes())
        if here := [told[pid] for pid in pids if pid in told]:
            lines = [text for one in here for text in advised([CodeLine(**line) for line in one.code])]
            texts = [running_text(one) for one in here]
            found[gpu.uuid or ""] = {"code": lines, "runs": texts, "pids": [one.pid for one in here]}
    return found


class Verdicts:
    """Judges the last minute every ten seconds. Fed by the hub's thread; `found` and `latest` may be read by any.

    `found` has one entry for each GPU that is neither idle nor unknown.
    """

    def __init__(self, programs: bool = True) -> None:
        """Judge; without `programs`, nothing is said of what programs of this computer report about themselves."""
        self.found: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, list[Any]]] = {}  # what Monitors say, by GPU: lines of code and runs, in words
        self._programs = programs
        self._asked = float("-inf")
        self._live = LiveDiagnosis()

    @property
    def latest(self) -> Diagnosis:
        """The last judgement."""
        return self._live.latest

    def add(self, snapshot: Snapshot) -> list[Event]:
        """Take a sample; return an event for each GPU whose verdict has changed."""
        before, judged = self._live.latest, self._live.add(snapshot)
        if self._live.latest is not before:
            self.found = [verdict_row(verdict) for verdict in self._live.latest if verdict.key not in QUIET]
        if self._programs and (judged or not 0 <= snapshot.time - self._asked < _RUNS_EVERY):
            self._asked = snapshot.time
            self.runs = _runs(snapshot)
        self.found = [row | self.runs.get(row["uuid"], _NO_RUNS) for row in self.found]
        return [verdict_event(verdict, snapshot.time) for verdict in self._live.changes] if judged else []
