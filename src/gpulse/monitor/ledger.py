"""The ledger of a run: time windows with their statistics, and the program's marks, phases and steps.

Marks, phases and steps come from the program's threads, samples from the listener's; all methods are thread-safe.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar

from ..analysis.energy import TELLING
from ..analysis.own_use import own_verdicts
from ..sampling.clock import SystemClock
from ..sinks.base import PhaseProgress
from .messages import EnergySinceStart, LastValues, MemoryTrail
from .rhythm import Marks, Rhythm
from .windows import Phase as Phase
from .windows import Sharing
from .windows import Window as Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..analysis.diagnosis.running import RunningDiagnosis
    from ..analysis.energy import Parts
    from ..analysis.summary import Mfu, Stats, Summary
    from ..analysis.tally import Tally
    from ..model.verdict import Diagnosis
    from .flops import StepFlops
    from .messages import AgentSample
    from .stack_sampler import StackSampler
    from .worker_stacks import WorkerStacks

_MOST_NAMES = 1000  # names of short measured calls that are remembered
_MOST_PHASES = 200  # names of phases: one for every step would make the summary, for which stop waits, take minutes
_MOST_MEASURED = 16  # measured calls at once that have figures of GPUs: with 8 GPUs, each takes 0.2 ms of every sample
OTHERS = "(others)"  # what is beyond
_PATIENCE = 30.0  # seconds a closed window waits for an energy reading after its end
_FRESH = 2.0  # seconds for which a sample describes the state before a window
STARTING = 5.0  # seconds after the start within which the first sample also stands for the time before it

# the current phases of a thread or of a task of an event loop
_inside: ContextVar[tuple[Phase, ...]] = ContextVar("gpulse_phases", default=())


class Ledger:
    """The data of one run. `edge` is called when a window starts or ends, so that a sample can be taken then.

    `watched` is true while samples arrive; otherwise a window is finished when it is closed. If set, `charge` is called with
    the mean power in watts whenever the energy counters have changed. `clock` is the one that samples are timed with.
    """

    def __init__(
        self, edge: Callable[[], None] = lambda: None, initial_step: int = 0, clock: SystemClock | None = None
    ) -> None:
        from ..analysis.tally import Tally

        self._new_tally = Tally
        self._edge = edge
        self._lock = threading.RLock()  # a handler of a signal may stop the run while its thread holds it
        self.clock = SystemClock() if clock is None else clock
        self.started = self.clock.monotonic()
        self.ended: float | None = None
        self.watched = False
        self.rhythm = Rhythm(initial_step, self._mfu)
        self.latest: AgentSample | None = None
        whole = Tally()  # now, not at the first sample: other threads count steps in it
        self._whole = Window(self.started, lambda: whole)
        self._windows = {self._whole: None}
        self._phases: dict[str, Phase] = {}
        self._brief: set[str] = set()
        self.marks = Marks(self.clock)
        self._sharing = Sharing()
        self._diagnosis: RunningDiagnosis | None = None
        self._judging = threading.RLock()  # judging takes milliseconds, for which no phase of the program waits
        self.at_step: tuple[Callable[[], None], ...] = ()  # called after each step, in the thread that made it
        self.at_stop: tuple[Callable[[], None], ...] = ()  # called before the run ends, in the thread that stops it
        self.flops: StepFlops | None = None
        self.charge: Callable[[float], None] | None = None
        self.ordinals: dict[str, int] = {}
        self.places: dict[int, str] = {}  # UUIDs by PID of the program, as the driver has listed them
        self.trail = MemoryTrail()
        self.energy = EnergySinceStart()
        self.last_values = LastValues()
        self._stepped: float | None = None
        self.workers: WorkerStacks | None = None  # where loader workers tell what they execute, if stacks are sampled
        self.code: StackSampler | None = None
        self._covered = 0.0  # seconds that samples stand for so far

    def open(
        self, make: Callable[[], Tally], finished: Callable[[Tally | None], None] | None = None, name: str = ""
    ) -> Window:
        """Open a separate window; `make` creates its tally at the first sample. A `name` whose calls are short takes no sample."""
        now, brief = self.clock.monotonic(), self.is_brief(name)
        window = Window(now, make, self._state_before(now), finished, name, brief)
        with self._lock:
            if sum(map(_is_measured, self._windows)) < _MOST_MEASURED:
                self._windows[window] = None
        if not brief:
            self._edge()
        return window

    def close(self, window: Window) -> None:
        """Close a window; its statistics are complete once it is `finished`."""
        window.end = self.clock.monotonic()
        self._brief.discard(window.name)
        if self.watched and window in self._windows:
            self._edge()
        else:
            self._remove(window)
            window.finish()

    def is_brief(self, name: str) -> bool:
        """Return whether the last call of this name was too short for any sample."""
        return isinstance(name, str) and name in self._brief

    def drop(self, window: Window) -> None:
        """Discard a window that is too short for any sample."""
        self._remove(window)
        if window.name and len(self._brief) < _MOST_NAMES:
            self._brief.add(window.name)

    @property
    def measuring(self) -> bool:
        """Whether a window is open whose statistics are needed."""
        return any(_is_measured(window) and not window.brief for window in [*self._windows])

    def enter(self, name: str) -> tuple[Phase, Window]:
        """Start a phase within the current phase of this thread or task."""
        stack = self._stack()
        path = f"{stack[-1].name}/{name}" if stack else name
        with self._lock:
            phase = self._phase(path)
            phase.calls += 1
        return phase, self.go_on(phase)

    def go_on(self, phase: Phase) -> Window:
        """Open a window of a phase in this thread or task, without another entry."""
        with self._lock:
            window = Window(self.clock.monotonic(), lambda: phase.tally)
            phase.begin(window)
        _inside.set((*_inside.get(), phase))
        if not phase.brief:
            self._edge()
        return window

    def leave(self, phase: Phase, window: Window) -> None:
        """End a phase, in whichever thread it was started."""
        inside = [*_inside.get()]
        if phase in inside:
            del inside[len(inside) - 1 - inside[::-1].index(phase)]
            _inside.set(tuple(inside))
        with self._lock:
            phase.end(window, self.clock.monotonic(), self.watched)
        if self.watched and not phase.brief:
            self._edge()

    def step(self, count: int, items: float, tokens: float = 0.0) -> None:
        """Count steps of the program in all current phases of this thread or task."""
        self.rhythm.steps += count
        self.rhythm.items += items
        self.rhythm.tokens += tokens
        stack = self._stack()
        seconds = self._step_seconds(stack, self.clock.monotonic()) if count > 0 else None
        for tally in (self._whole.tally, *(phase.tally for phase in stack)):
            tally.steps += count
            tally.items += items
            tally.tokens += tokens
            if seconds is not None:
                tally.step_times.add(seconds, count)
        if count > 0:
            for call in self.at_step:
                call()

    def _step_seconds(self, stack: list[Phase], now: float) -> float | None:
        """Return the time since the last step, in a phase only that spent in it, so that no evaluation counts as part of a step."""
        before, self._stepped = self._stepped, now
        if not stack:
            return None if before is None else now - before
        spent = stack[-1].seconds(now)
        since, stack[-1].stepped = spent - stack[-1].stepped, spent
        return since

    def waited(self, seconds: float) -> None:
        """Add time that the program waited for data."""
        self.rhythm.waited += seconds
        for tally in (self._whole.tally, *(phase.tally for phase in self._stack())):
            tally.waited += seconds

    def replay(self, until: float, progress: Mapping[str, PhaseProgress]) -> None:
        """Add what a program elsewhere, under an empty name, and its phases went through up to a time."""
        for name, each in progress.items():
            with self._lock:
                tally = self._whole.tally
                if name:
                    phase = self._phase(name)
                    phase.replay(until, each.seconds, int(each.calls))
                    tally = phase.tally
                else:
                    self.rhythm.waited += each.waited
            tally.steps += int(each.steps)
            tally.items += each.items
            tally.tokens += each.tokens
            tally.waited += each.waited

    def phase(self) -> str:
        """Return the name of the most recently started open phase, or an empty text."""
        with self._lock:
            inside = [(phase.open[-1].start, phase.name) for phase in self._phases.values() if phase.open]
        return max(inside)[1] if inside else ""

    def add(self, snap: AgentSample) -> None:
        """Add a sample, which represents the interval since the previous one."""
        fresh = self.last_values.add(snap.snapshot)
        with self._lock:
            before, self.latest = self._before(snap.at), snap
            self.trail.add(snap.snapshot)
            self.places.update(_places(snap))
            parts = self._parts(snap, before)
            seconds = snap.at - before
            self._covered += seconds
            self.energy.add(snap.snapshot, seconds)
            watts = self._sharing.add(snap, parts, seconds, fresh)
            finished = [window for window in self._windows if self._is_finished(window, snap.at)]
            for window in finished:
                del self._windows[window]
                self._forget(window)
        self._diagnose(snap)
        if self.code is not None:
            self.code.add(snap)
        for window in finished:
            window.finish()
        if watts is not None and self.charge is not None:
            self.charge(watts)

    @property
    def step_time(self) -> Stats | None:
        """The seconds per step so far, exact once the run has ended; None before the second step."""
        times = self._whole.tally.step_times
        return times.recent if self.ended is None else times.stats

    def progress(self, at: float | None = None) -> dict[str, PhaseProgress]:
        """Return what the run, under an empty name, and every phase went through up to a time; None: as far as samples cover it."""
        with self._lock:
            spent = self._covered if at is None else at - self.started
            parts = [("", spent, 0, self._whole.tally)]
            for phase in self._phases.values():
                spent = phase.covered if at is None else phase.seconds(at)
                parts.append((phase.name, spent, phase.calls, phase.tally))
        return {
            name: PhaseProgress(seconds, calls, tally.steps, tally.items, tally.waited, tally.tokens)
            for name, seconds, calls, tally in parts
        }

    def _diagnose(self, snap: AgentSample) -> None:
        from ..analysis.diagnosis.running import RunningDiagnosis

        with self._judging:
            if self._diagnosis is None:
                self._diagnosis = RunningDiagnosis()
            self._diagnosis.add(snap.snapshot, snap.program, snap.own)

    def diagnosis(self) -> Diagnosis:
        """Return what limited each GPU so far, as text and numbers."""
        from ..analysis.diagnosis.running import with_wait
        from ..model.verdict import Diagnosis
        from ..present.verdicts import worded

        with self._judging:
            found = Diagnosis() if self._diagnosis is None else self._diagnosis.diagnosis()
        return worded(with_wait(found, 100 * self.rhythm.waited / max(self.seconds, 1e-9)))

    @property
    def seconds(self) -> float:
        """How long the run has lasted, up to its end if it has ended."""
        return self._until() - self.started

    def _until(self) -> float:
        return self.clock.monotonic() if self.ended is None else self.ended

    def end(self) -> None:
        """Record that the run has ended."""
        self.ended = self.clock.monotonic()
        self.unwatched()

    def unwatched(self) -> None:
        """Record that no more samples will arrive; windows that wait for one are finished as they are."""
        self.watched = False
        with self._lock:
            left, self._windows = self._windows, {}
        for window in left:
            if window.end is not None:
                window.finish()

    def summary(self) -> Summary:
        """Return the statistics of the run and of every phase so far."""
        now = self._until()
        with self._lock:
            whole, phases = self._whole.tally.summary("", now - self.started), [*self._phases.values()]
        whole.phases = tuple(self._summary(phase, now) for phase in phases)
        for each in (whole, *whole.phases):
            for gpu in each.gpus:
                gpu.ordinal = self.ordinals.get(gpu.uuid or "")
        whole.step_blocks = self._whole.tally.step_times.blocks
        whole.mfu = self._mfu(whole.steps_per_second or 0.0)
        if self.code is not None:
            whole.code, whole.stacks = [*self.code.lines()], self.code.stacks()
        whole.diagnosis = own_verdicts(self.diagnosis(), {gpu.uuid: gpu.own for gpu in whole.gpus})
        return whole

    def _summary(self, phase: Phase, now: float) -> Summary:
        with self._lock:  # for each: a phase that begins meanwhile does not wait for all of them
            summary = phase.tally.summary(phase.name, phase.seconds(now))
        summary.calls = phase.calls
        return summary

    def _mfu(self, steps_per_second: float) -> Mfu | None:
        """Return the utilization of the GPUs that the program used, or of all where that is not known; None if nobody asked."""
        if self.flops is None:
            return None
        with self._lock:
            models = [gpu.model for gpu in self._whole.tally.gpus.values() if gpu.own.used is not False]
        return self.flops.mfu(steps_per_second, models)

    def energy_rates(self) -> dict[str, float]:
        """Return the energy for each item and token so far, by tag; without what the program does not count."""
        whole = self._whole.tally
        counted = {name: count for name, count in (("item", whole.items), ("token", whole.tokens)) if count}
        if not counted:
            return {}
        with self._lock:
            gpus = [gpu for gpu in whole.gpus.values() if gpu.own.used is not False]
            joules = [energy for gpu in gpus if (energy := gpu.charged) is not None]
        return {f"train/energy_per_{name}": sum(joules) / count for name, count in counted.items() if joules}

    def _phase(self, name: str) -> Phase:
        if name not in self._phases:
            name = name if len(self._phases) < _MOST_PHASES else OTHERS
            self._phases.setdefault(name, Phase(self, name, self._new_tally()))
        return self._phases[name]

    def _stack(self) -> list[Phase]:
        return [phase for phase in _inside.get() if phase.ledger is self]

    def _state_before(self, now: float) -> AgentSample | None:
        """Return the state before a window that starts now; None if the latest sample is too old."""
        latest = self.latest
        if latest is None or now - latest.at >= _FRESH:
            return None
        return latest.replace(snapshot=self.last_values.complete(latest.snapshot))

    def _remove(self, window: Window) -> None:
        with self._lock:
            if self._windows.pop(window, window) is None:
                self._forget(window)

    def _forget(self, window: Window) -> None:
        if (tally := window.made) is not None:
            self._sharing.forget(tally)

    def _before(self, at: float) -> float:
        """Return when the interval of a sample began; the first sample also stands for the start of the sampling process."""
        if self.latest is not None:
            return self.latest.at
        return self.started if 0.0 <= at - self.started < STARTING else at

    def _parts(self, snap: AgentSample, before: float) -> Parts:
        """Add a sample to every window and phase of its interval; return their tallies with the seconds of each in it."""
        parts: list[tuple[Tally, float]] = []
        found: list[tuple[Window | Phase, float]] = [
            (window, window.overlap(before, snap.at)) for window in self._windows
        ]
        found += [(phase, phase.take(snap.at)) for phase in self._phases.values()]
        for part, seconds in found:
            if seconds > 0 or part.begins_with(snap.at):
                part.tally.add(snap.snapshot, snap.program, max(seconds, 1e-6), part.contains(snap.at), snap.own)
            if seconds > 0:
                parts.append((part.tally, seconds))
        return parts

    def _is_finished(self, window: Window, at: float) -> bool:
        if window.end is None or window.end > at:
            return False
        if window.end - window.start < TELLING or at - window.end > _PATIENCE:
            return True
        return self._sharing.energy_known_until(window.end)


def _is_measured(window: Window) -> bool:
    return window.finished is not None and window.end is None


def _places(snap: AgentSample) -> Iterator[tuple[int, str]]:
    for gpu in snap.snapshot.gpus if snap.own else ():
        for process in gpu.all_processes():
            if process.pid in (snap.own or ()):
                yield int(process.pid or 0), gpu.uuid or ""
