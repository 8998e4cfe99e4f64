"""The ledger of a run: time windows with their statistics, and the program's marks, phases and steps.

Marks, phases and steps come from the program's threads, samples from the listener's; all methods are thread-safe.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar

from ..analysis.cpu import CpuMeter
from ..analysis.energy import TELLING
from ..analysis.own_use import energy_share, own_verdicts, tells_processes
from ..analysis.shares import EnergyShares, Shares
from ..sinks.base import PhaseProgress
from .held import HeldValues
from .marks import Marks
from .memory_trail import MemoryTrail
from .rhythm import Rhythm
from .windows import Phase as Phase
from .windows import Window as Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..analysis.diagnosis.running import RunningDiagnosis
    from ..analysis.own_use import EnergyShare
    from ..analysis.series import WeightedSeries
    from ..analysis.shares import Parts
    from ..analysis.summary import Summary
    from ..analysis.tally import Tally
    from ..model.catalog import Gpu
    from ..model.verdict import Diagnosis
    from ..sinks.base import Mark
    from .request import AgentSample

_MOST_NAMES = 1000  # names of short measured calls that are remembered
_PATIENCE = 30.0  # seconds a closed window waits for an energy reading after its end
_FRESH = 2.0  # seconds for which a sample describes the state before a window
_STARTING = 5.0  # seconds after the start within which the first sample also stands for the time before it

# the current phases of a thread or of a task of an event loop
_inside: ContextVar[tuple[Phase, ...]] = ContextVar("gpulse_phases", default=())


class Ledger:
    """The data of one run. `edge` is called when a window starts or ends, so that a sample can be taken then.

    `watched` is true while samples arrive; otherwise a window is finished when it is closed. If set, `charge` is called with
    the mean power in watts whenever the energy counters have changed.
    """

    def __init__(self, edge: Callable[[], None], initial_step: int = 0) -> None:
        from ..analysis.tally import Tally

        self._new_tally = Tally
        self._edge = edge
        self._lock = threading.Lock()
        self.started = time.monotonic()
        self.ended: float | None = None
        self.watched = False
        self.rhythm = Rhythm(initial_step)
        self.latest: AgentSample | None = None
        whole = Tally()  # now, not at the first sample: other threads count steps in it
        self._whole = Window(self.started, lambda: whole)
        self._windows = [self._whole]
        self._phases: dict[str, Phase] = {}
        self._brief: set[str] = set()
        self._marks = Marks()
        self._counters: dict[str, EnergyShares] = {}
        self._activity = Shares()
        self._process_shares = Shares()
        self._diagnosis: RunningDiagnosis | None = None
        self._judging = threading.Lock()  # judging takes milliseconds, for which no phase of the program waits
        self._cpu = CpuMeter()
        self._cpu_shares = {key: Shares() for key in self._cpu.keys}
        self.charge: Callable[[float], None] | None = None
        self.ordinals: dict[str, int] = {}
        self.trail = MemoryTrail()
        self.held = HeldValues()
        self._stepped: float | None = None
        self._covered = 0.0  # seconds that samples stand for so far

    def open(
        self, make: Callable[[], Tally], finished: Callable[[Tally | None], None] | None = None, name: str = ""
    ) -> Window:
        """Open a separate window; `make` creates its tally at the first sample. A `name` whose calls are short takes no sample."""
        now, brief = time.monotonic(), self.is_brief(name)
        window = Window(now, make, self._state_before(now), finished, name, brief)
        with self._lock:
            self._windows.append(window)
        if not brief:
            self._edge()
        return window

    def close(self, window: Window) -> None:
        """Close a window; its statistics are complete once it is `finished`."""
        window.end = time.monotonic()
        self._brief.discard(window.name)
        if self.watched:
            self._edge()
        else:
            self._remove(window)
            window.finish()

    def is_brief(self, name: str) -> bool:
        """Return whether the last call of this name was too short for any sample."""
        return bool(name) and name in self._brief

    def drop(self, window: Window) -> None:
        """Discard a window that is too short for any sample."""
        self._remove(window)
        if window.name and len(self._brief) < _MOST_NAMES:
            self._brief.add(window.name)

    @property
    def measuring(self) -> bool:
        """Whether a window is open whose statistics are needed."""
        return any(
            window.finished is not None and window.end is None and not window.brief for window in [*self._windows]
        )

    def enter(self, name: str) -> tuple[Phase, Window]:
        """Start a phase within the current phase of this thread or task."""
        stack = self._stack()
        path = f"{stack[-1].name}/{name}" if stack else name
        with self._lock:
            phase = self._phases.get(path)
            if phase is None:
                phase = self._phases[path] = Phase(self, path, self._new_tally())
            window = Window(time.monotonic(), _of_phase(phase))
            phase.begin(window)
        _inside.set((*_inside.get(), phase))
        if not phase.brief:
            self._edge()
        return phase, window

    def leave(self, phase: Phase, window: Window) -> None:
        """End a phase, in whichever thread it was started."""
        inside = [*_inside.get()]
        if phase in inside:
            del inside[len(inside) - 1 - inside[::-1].index(phase)]
            _inside.set(tuple(inside))
        with self._lock:
            phase.end(window, time.monotonic(), self.watched)
        if self.watched and not phase.brief:
            self._edge()

    def step(self, count: int, items: float) -> None:
        """Count steps of the program in all current phases of this thread or task."""
        self.rhythm.steps += count
        self.rhythm.items += items
        stack = self._stack()
        seconds = self._step_seconds(stack, time.monotonic())
        for tally in (self._whole.tally, *(phase.tally for phase in stack)):
            tally.steps += count
            tally.items += items
            if seconds is not None and count > 0:
                tally.step_times.add(seconds / count, count)

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

    def mark(self, name: str, value: object) -> None:
        """Record a mark."""
        self._marks.add(name, value)

    def new_marks(self) -> tuple[Mark, ...]:
        """Return the marks since the last call."""
        return self._marks.new()

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The newest marks, at most ten thousand."""
        return self._marks.all()

    def phase(self) -> str:
        """Return the name of the most recently started open phase, or an empty text."""
        with self._lock:
            inside = [(phase.open[-1].start, phase.name) for phase in self._phases.values() if phase.open]
        return max(inside)[1] if inside else ""

    def add(self, snap: AgentSample) -> None:
        """Add a sample, which represents the interval since the previous one."""
        fresh = self.held.add(snap.snapshot)
        with self._lock:
            before, self.latest = self._before(snap.at), snap
            self.trail.add(snap.snapshot)
            parts = self._parts(snap, before)
            seconds = snap.at - before
            self._covered += seconds
            self._share_activity(snap, parts, seconds, fresh)
            self._share_cpu(snap, parts, seconds)
            self._share_processes(snap, parts, seconds)
            watts = self._share_energy(snap, parts, seconds)
            finished = [window for window in self._windows if self._is_finished(window, snap.at)]
            for window in finished:
                self._windows.remove(window)
                self._forget(window)
        self._diagnose(snap)
        for window in finished:
            window.finish()
        if watts is None:
            watts = _power(snap)
        if watts is not None and self.charge is not None:
            self.charge(watts)

    @property
    def step_time(self) -> WeightedSeries:
        """The seconds per step so far."""
        return self._whole.tally.step_times

    def progress(self) -> dict[str, PhaseProgress]:
        """Return what samples have covered so far of every phase, by name, and of the run under an empty name."""
        with self._lock:
            parts = [("", self._covered, 0, self._whole.tally)]
            parts += [(phase.name, phase.covered, phase.calls, phase.tally) for phase in self._phases.values()]
        return {
            name: PhaseProgress(seconds, calls, tally.steps, tally.items, tally.waited)
            for name, seconds, calls, tally in parts
        }

    def _diagnose(self, snap: AgentSample) -> None:
        from ..analysis.diagnosis.running import RunningDiagnosis

        with self._judging:
            if self._diagnosis is None:
                self._diagnosis = RunningDiagnosis()
            self._diagnosis.add(snap.snapshot, snap.program, snap.own)

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
        whole.diagnosis = own_verdicts(self.diagnosis(), {gpu.uuid: gpu.own for gpu in whole.gpus})
        return whole

    def _stack(self) -> list[Phase]:
        return [phase for phase in _inside.get() if phase.ledger is self]

    def _state_before(self, now: float) -> AgentSample | None:
        """Return the state before a window that starts now; None if the latest sample is too old."""
        latest = self.latest
        if latest is None or now - latest.at >= _FRESH:
            return None
        return latest.with_snapshot(self.held.complete(latest.snapshot))

    def _remove(self, window: Window) -> None:
        with self._lock:
            if window in self._windows:
                self._windows.remove(window)
                self._forget(window)

    def _forget(self, window: Window) -> None:
        if (tally := window.made) is not None:
            for shares in (self._activity, self._process_shares, *self._cpu_shares.values()):
                shares.forget(tally)
            for counter in self._counters.values():
                counter.forget(tally)

    def _before(self, at: float) -> float:
        """Return when the interval of a sample began; the first sample also stands for the start of the sampling process."""
        if self.latest is not None:
            return self.latest.at
        return self.started if 0.0 <= at - self.started < _STARTING else at

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

    def _share_activity(self, snap: AgentSample, parts: Parts, seconds: float, fresh: bool) -> None:
        """Let activity values stand for the time since they were last read: each has counted for this interval already."""
        if fresh and self._activity.total > 0:
            for tally, unread in self._activity.take():
                tally.add_activity(snap.snapshot, unread)
        elif not fresh:
            self._activity.add(parts, seconds)

    def _share_processes(self, snap: AgentSample, parts: Parts, seconds: float) -> None:
        """Let the SM shares of the processes stand for the time since they were last read."""
        self._process_shares.add(parts, seconds)
        if snap.slow:
            for tally, unread in self._process_shares.take():
                if snap.own is not None:
                    tally.add_shares(snap.snapshot, snap.own, unread)

    def _share_cpu(self, snap: AgentSample, parts: Parts, seconds: float) -> None:
        """Share the growth of the program's CPU time among the windows."""
        for shares in self._cpu_shares.values():
            shares.add(parts, seconds)
        for key, used, since in self._cpu.add(snap.program, snap.at):
            for tally, part in self._cpu_shares[key].take():
                tally.add_cpu(key, used * part / (snap.at - since), part)
        for key, shares in self._cpu_shares.items():
            if shares.total and self._cpu.read_at(key) in (None, snap.at):
                shares.take()  # nothing to compare with before the first reading

    def _share_energy(self, snap: AgentSample, parts: Parts, seconds: float) -> float | None:
        """Share the growth of the energy counters among the windows; return the program's mean power since they were last read."""
        watts: float | None = None
        for gpu in snap.snapshot.gpus:
            if gpu.uuid is None:
                continue
            if gpu.uuid not in self._counters:
                self._counters[gpu.uuid] = EnergyShares(gpu.uuid)
            share = _share(gpu, snap.own)
            mean = self._counters[gpu.uuid].add(gpu, parts, seconds, snap.at, share)
            if mean is not None and (own := _own(mean, share)) is not None:
                watts = (watts or 0.0) + own
        return watts

    def _is_finished(self, window: Window, at: float) -> bool:
        if window.end is None or window.end > at:
            return False
        if window.end - window.start < TELLING or at - window.end > _PATIENCE:
            return True
        return all(read is None or read >= window.end for read in (shares.at for shares in self._counters.values()))


def _of_phase(phase: Phase) -> Callable[[], Tally]:
    return lambda: phase.tally


def _power(snap: AgentSample) -> float | None:
    """Return the program's power on all GPUs in watts where none has an energy counter; None where one has."""
    gpus = snap.snapshot.gpus
    known = [_own(gpu.power_draw, _share(gpu, snap.own)) for gpu in gpus if gpu.power_draw is not None]
    watts = [power for power in known if power is not None]
    return sum(watts) if watts and all(gpu.energy is None for gpu in gpus) else None


def _share(gpu: Gpu, own: Collection[int] | None) -> EnergyShare | None:
    """Return the program's share of a GPU's energy; None where processes cannot be told apart, so that all of it counts."""
    return None if own is None or not tells_processes(gpu) else energy_share(gpu, own)


def _own(watts: float, share: EnergyShare | None) -> float | None:
    return watts if share is None else None if share.value is None else watts * share.value
