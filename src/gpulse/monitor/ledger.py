"""The ledger of a run: time windows with their statistics, and the program's marks, phases and steps.

Marks, phases and steps come from the program's threads, samples from the listener's; all methods are thread-safe.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar

from ..analysis.cpu import CpuMeter
from ..analysis.energy import TELLING
from ..model.growth import Growth
from ..sinks.base import Mark
from .memory_trail import MemoryTrail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.diagnosis.running import RunningDiagnosis
    from ..analysis.summary import Summary
    from ..analysis.tally import Tally
    from ..model.verdict import Diagnosis
    from .request import AgentSample

_MOST_MARKS = 10_000
_PATIENCE = 30.0  # seconds a closed window waits for an energy reading after its end
_FRESH = 2.0  # seconds for which a sample describes the state before a window


class Window:
    """A time window on the monotonic clock, open while `end` is None. `finished` is called once with its tally when it is complete.

    The tally is created at the first sample in the window: most windows of short functions have none.
    """

    __slots__ = ("_before", "_made", "_make", "end", "finished", "start")

    def __init__(
        self,
        start: float,
        make: Callable[[], Tally],
        before: AgentSample | None = None,
        finished: Callable[[Tally | None], None] | None = None,
    ) -> None:
        self.start = start
        self.end: float | None = None
        self.finished = finished
        self._before = before
        self._make = make
        self._made: Tally | None = None

    @property
    def tally(self) -> Tally:
        """The statistics of this window."""
        if self._made is None:
            self._made = self._make()
            if self._before is not None:
                self._made.begin(self._before.snapshot)
        return self._made

    def finish(self) -> None:
        """Notify waiters that the window is complete."""
        if self.finished is not None:
            self.finished(self._made)

    def overlap(self, start: float, end: float) -> float:
        """Return how many seconds of an interval are in this window."""
        return min(end, end if self.end is None else self.end) - max(start, self.start)


class Phase:
    """All the windows of one name in one ledger."""

    def __init__(self, ledger: Ledger, name: str, tally: Tally) -> None:
        self.ledger = ledger
        self.name = name
        self.tally = tally
        self.calls = 0
        self.closed = 0.0
        self.open: list[Window] = []

    def seconds(self, now: float) -> float:
        """Return the time spent in this phase so far."""
        return self.closed + sum(now - window.start for window in self.open)


# the current phases of a thread or of a task of an event loop
_inside: ContextVar[tuple[Phase, ...]] = ContextVar("gpulse_phases", default=())


class SampleRhythm:
    """The program's progress since the previous sample: steps, items and time spent waiting for data."""

    def __init__(self) -> None:
        self.steps = 0
        self.items = 0.0
        self.waited = 0.0
        self._at = (0, 0.0, 0.0)

    def since(self, seconds: float) -> dict[str, float]:
        """Return the rates since the last call by tag, without what the program does not count."""
        steps, items, waited = self.steps, self.items, self.waited
        before, self._at = self._at, (steps, items, waited)
        values: dict[str, float] = {}
        if seconds > 0:
            if steps:
                values["train/steps_per_second"] = (steps - before[0]) / seconds
            if items:
                values["train/items_per_second"] = (items - before[1]) / seconds
            if waited:
                values["train/data_wait"] = min(100.0, 100.0 * (waited - before[2]) / seconds)
        return values


class Ledger:
    """The data of one run. `edge` is called when a window starts or ends, so that a sample can be taken then.

    `watched` is true while samples arrive; otherwise a window is finished when it is closed. If set, `charge` is called with
    the mean power in watts whenever the energy counters have changed.
    """

    def __init__(self, edge: Callable[[], None]) -> None:
        from ..analysis.tally import Tally

        self._new_tally = Tally
        self._edge = edge
        self._lock = threading.Lock()
        self.started = time.monotonic()
        self.ended: float | None = None
        self.watched = False
        self.rhythm = SampleRhythm()
        self.latest: AgentSample | None = None
        whole = Tally()  # now, not at the first sample: other threads count steps in it
        self._whole = Window(self.started, lambda: whole)
        self._windows = [self._whole]
        self._phases: dict[str, Phase] = {}
        self._marks: list[Mark] = []
        self._told = 0
        self._counters: dict[str, Growth] = {}
        self._diagnosis: RunningDiagnosis | None = None
        self._judging = threading.Lock()  # judging takes milliseconds, for which no phase of the program waits
        self._cpu = CpuMeter()
        self.charge: Callable[[float], None] | None = None
        self.ordinals: dict[str, int] = {}
        self.trail = MemoryTrail()

    def open(self, make: Callable[[], Tally], finished: Callable[[Tally | None], None] | None = None) -> Window:
        """Open a separate window; `make` creates its tally at the first sample."""
        now, latest = time.monotonic(), self.latest
        window = Window(now, make, latest if latest is not None and now - latest.at < _FRESH else None, finished)
        with self._lock:
            self._windows.append(window)
        self._edge()
        return window

    def close(self, window: Window) -> None:
        """Close a window; its statistics are complete once it is `finished`."""
        window.end = time.monotonic()
        if self.watched:
            self._edge()
        else:
            self.drop(window)
            window.finish()

    def drop(self, window: Window) -> None:
        """Discard a window that is too short for any sample."""
        with self._lock:
            if window in self._windows:
                self._windows.remove(window)

    @property
    def measuring(self) -> bool:
        """Whether a window is open whose statistics are needed."""
        return any(window.finished is not None and window.end is None for window in self._windows)

    def enter(self, name: str) -> tuple[Phase, Window]:
        """Start a phase within the current phase of this thread or task."""
        stack = self._stack()
        path = f"{stack[-1].name}/{name}" if stack else name
        with self._lock:
            if path not in self._phases:
                self._phases[path] = Phase(self, path, self._new_tally())
            phase = self._phases[path]
        window = self.open(lambda: phase.tally)
        with self._lock:
            phase.calls += 1
            phase.open.append(window)
        _inside.set((*_inside.get(), phase))
        return phase, window

    def leave(self, phase: Phase, window: Window) -> None:
        """End a phase, in whichever thread it was started."""
        inside = [*_inside.get()]
        if phase in inside:
            del inside[len(inside) - 1 - inside[::-1].index(phase)]
            _inside.set(tuple(inside))
        self.close(window)
        with self._lock:
            phase.open.remove(window)
            phase.closed += (window.end or window.start) - window.start

    def step(self, count: int, items: float) -> None:
        """Count steps of the program in all current phases of this thread or task."""
        self.rhythm.steps += count
        self.rhythm.items += items
        for tally in (self._whole.tally, *(phase.tally for phase in self._stack())):
            tally.steps += count
            tally.items += items

    def waited(self, seconds: float) -> None:
        """Add time that the program waited for data."""
        self.rhythm.waited += seconds
        for tally in (self._whole.tally, *(phase.tally for phase in self._stack())):
            tally.waited += seconds

    def mark(self, name: str, value: float | str | None) -> None:
        """Record a mark."""
        with self._lock:
            if len(self._marks) < _MOST_MARKS:
                self._marks.append(Mark(name, value, time.time()))

    def new_marks(self) -> tuple[Mark, ...]:
        """Return the marks since the last call."""
        with self._lock:
            fresh, self._told = tuple(self._marks[self._told :]), len(self._marks)
        return fresh

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All marks, at most ten thousand."""
        return tuple(self._marks)

    def phase(self) -> str:
        """Return the name of the most recently started open phase, or an empty text."""
        with self._lock:
            inside = [(phase.open[-1].start, phase.name) for phase in self._phases.values() if phase.open]
        return max(inside)[1] if inside else ""

    def add(self, snap: AgentSample) -> None:
        """Add a sample, which represents the interval since the previous one."""
        before = self.latest.at if self.latest is not None else snap.at
        with self._lock:
            self.latest = snap
            self.trail.add(snap.snapshot)
            for window in self._windows:
                seconds = window.overlap(before, snap.at)
                if seconds > 0 or (window.start <= snap.at and window.tally.samples == 0):
                    within = window.end is None or snap.at < window.end
                    window.tally.add(snap.snapshot, snap.program, max(seconds, 1e-6), within)
            self._spread_cpu(snap)
            points, watts = self._spread_energy(snap)
            finished = [window for window in self._windows if self._is_finished(window, snap.at, points)]
            self._windows = [window for window in self._windows if window not in finished]
        self._diagnose(snap)
        for window in finished:
            window.finish()
        if watts is None:
            watts = _power(snap)
        if watts is not None and self.charge is not None:
            self.charge(watts)

    def _diagnose(self, snap: AgentSample) -> None:
        from ..analysis.diagnosis.running import RunningDiagnosis

        with self._judging:
            if self._diagnosis is None:
                self._diagnosis = RunningDiagnosis()
            self._diagnosis.add(snap.snapshot, snap.program)

    def diagnosis(self) -> Diagnosis:
        """Return what limited each GPU so far, in words and numbers."""
        from ..analysis.diagnosis.waiting import with_wait
        from ..model.verdict import Diagnosis
        from ..present.verdicts import worded

        seconds = (self.ended or time.monotonic()) - self.started
        with self._judging:
            found = Diagnosis() if self._diagnosis is None else self._diagnosis.diagnosis()
        return worded(with_wait(found, 100 * self.rhythm.waited / max(seconds, 1e-9)))

    def end(self) -> None:
        """Record that the run has ended."""
        self.ended = time.monotonic()
        self.unwatched()

    def unwatched(self) -> None:
        """Record that no more samples will arrive; windows that wait for one are finished as they are."""
        self.watched = False
        with self._lock:
            left, self._windows = self._windows, []
        for window in left:
            if window.end is not None:
                window.finish()

    def summary(self) -> Summary:
        """Return the statistics of the run and of every phase so far."""
        now = self.ended or time.monotonic()
        with self._lock:
            whole = self._whole.tally.summary("", now - self.started)
            phases = [(phase, phase.tally.summary(phase.name, phase.seconds(now))) for phase in self._phases.values()]
        for phase, summary in phases:
            summary.calls = phase.calls
        whole.phases = tuple(summary for _, summary in phases)
        for each in (whole, *whole.phases):
            for gpu in each.gpus:
                gpu.ordinal = self.ordinals.get(gpu.uuid or "")
        whole.diagnosis = self.diagnosis()
        return whole

    def _stack(self) -> list[Phase]:
        return [phase for phase in _inside.get() if phase.ledger is self]

    def _spread_cpu(self, snap: AgentSample) -> None:
        """Share the growth of the program's CPU time among the windows."""
        for key, used, since in self._cpu.add(snap.program, snap.at):
            for window in self._windows:
                if (seconds := window.overlap(since, snap.at)) > 0:
                    window.tally.add_cpu(key, used * seconds / (snap.at - since), seconds)

    def _spread_energy(self, snap: AgentSample) -> tuple[dict[str, float], float | None]:
        """Share the growth of the energy counters among the windows; return when each was last read, and the power since then."""
        watts: float | None = None
        points: dict[str, float] = {}
        for gpu in snap.snapshot.gpus:
            if gpu.uuid is None:
                continue
            counter = self._counters.setdefault(gpu.uuid, Growth())
            growth = counter.grown(gpu.energy, snap.at)
            if counter.at is not None:
                points[gpu.uuid] = counter.at
            if growth is None:
                continue
            joules, since = growth
            watts = (watts or 0.0) + joules / (snap.at - since)
            for window in self._windows:
                if (seconds := window.overlap(since, snap.at)) > 0:
                    window.tally.add_energy(gpu.uuid, joules * seconds / (snap.at - since))
        return points, watts

    def _is_finished(self, window: Window, at: float, points: dict[str, float]) -> bool:
        if window.end is None or window.end > at:
            return False
        if window.end - window.start < TELLING or at - window.end > _PATIENCE:
            return True
        return all(point >= window.end for point in points.values())


def _power(snap: AgentSample) -> float | None:
    """Return the power of all GPUs in watts where none has an energy counter; None where one has."""
    gpus = snap.snapshot.gpus
    known = [gpu.power_draw for gpu in gpus if gpu.power_draw is not None]
    return sum(known) if known and all(gpu.energy is None for gpu in gpus) else None
