"""Windows: stretches of time on the monotonic clock whose statistics are collected, and the phases that repeat them.

A sample is shared among the windows of its interval: activity, CPU time and energy are counted since they were last read.
"""

from __future__ import annotations

from ..analysis.energy import CpuMeter, EnergyMeter, Shares
from ..analysis.own_use import energy_share, tells_processes
from .reported import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, TypeVar

    from ..analysis.energy import Parts
    from ..analysis.own_use import EnergyShare
    from ..analysis.tally import Tally
    from ..model.catalog import Gpu
    from .ledger import Ledger
    from .messages import AgentSample
    from .monitor import Monitor

    F = TypeVar("F", bound=Callable[..., Any])

BRIEF = 0.1  # seconds: the activity counters do not latch faster, so nothing can be measured in a shorter window
_MOST_SPANS = 256  # closed windows of one phase that are kept apart until the next sample; more are merged


class Window:
    """A time window, open while `end` is None. `finished` is called once with its tally when it is complete.

    The tally is created at the first sample in the window: most windows of short functions have none. `made` is None until then.
    """

    __slots__ = ("_before", "_make", "brief", "end", "finished", "made", "name", "start")

    def __init__(
        self,
        start: float,
        make: Callable[[], Tally],
        before: AgentSample | None = None,
        finished: Callable[[Tally | None], None] | None = None,
        name: str = "",
        brief: bool = False,
    ) -> None:
        self.start = start
        self.end: float | None = None
        self.finished = finished
        self.name = name
        self.brief = brief
        self._before = before
        self._make = make
        self.made: Tally | None = None

    @property
    def tally(self) -> Tally:
        """The statistics of this window."""
        if self.made is None:
            self.made = self._make()
            if self._before is not None:
                self.made.begin(self._before.snapshot, self._before.own)
        return self.made

    def finish(self) -> None:
        """Notify waiters that the window is complete."""
        if self.finished is not None:
            self.finished(self.made)

    def overlap(self, start: float, end: float) -> float:
        """Return how many seconds of an interval are in this window."""
        return min(end, end if self.end is None else self.end) - max(start, self.start)

    def begins_with(self, at: float) -> bool:
        """Return whether a sample at this time is the first one of the window."""
        return self.start <= at and self.tally.samples == 0

    def contains(self, at: float) -> bool:
        """Return whether a sample at this time was taken before the end of the window."""
        return self.end is None or at < self.end


class Spans:
    """The closed windows of one phase that no sample has covered yet.

    Bounded: beyond a limit, neighbors are merged into one span that is in the phase for a part of its time.
    """

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: list[list[float]] = []  # start, end, seconds within the phase

    def add(self, start: float, end: float) -> None:
        """Add a window that has ended."""
        if len(self._spans) < _MOST_SPANS:
            self._spans.append([start, end, end - start])
        else:
            last = self._spans[-1]
            last[0], last[1], last[2] = min(last[0], start), max(last[1], end), last[2] + end - start

    def take(self, until: float) -> float:
        """Remove and return the seconds before this time."""
        seconds, rest = 0.0, []
        for span in self._spans:
            start, end, within = span
            share = 1.0 if end <= until else max(0.0, until - start) / (end - start)
            seconds += within * share
            if share < 1.0:
                rest.append([max(start, until), end, within * (1.0 - share)])
        self._spans = rest
        return seconds

    def covers(self, at: float) -> bool:
        """Return whether a window that is left includes this time."""
        return any(start <= at < end for start, end, _ in self._spans)


class Phase:
    """All the windows of one name in one ledger; guarded by the ledger's lock."""

    __slots__ = (
        "_spans",
        "_taken",
        "brief",
        "calls",
        "closed",
        "covered",
        "ledger",
        "name",
        "open",
        "stepped",
        "tally",
    )

    def __init__(self, ledger: Ledger, name: str, tally: Tally) -> None:
        self.ledger = ledger
        self.name = name
        self.tally = tally
        self.calls = 0
        self.closed = 0.0
        self.open: list[Window] = []
        self.covered = 0.0  # seconds that samples stand for so far
        self.stepped = 0.0  # seconds spent in it at its last step
        self.brief = False  # whether its last window was too short to measure
        self._spans = Spans()
        self._taken = float("-inf")

    def begin(self, window: Window) -> None:
        """Open a window."""
        self.open.append(window)

    def end(self, window: Window, at: float, sampled: bool) -> None:
        """Close a window; if it is `sampled`, its time waits for the next sample."""
        window.end = at
        self.open.remove(window)
        self.closed += at - window.start
        self.brief = at - window.start < BRIEF
        if sampled and at > (start := max(window.start, self._taken)):
            self._spans.add(start, at)

    def replay(self, until: float, seconds: float, calls: int) -> None:
        """Add time in this phase that ended at or before `until`, and waits for the next sample."""
        self.calls += calls
        self.closed += seconds
        if seconds > 0:
            self._spans.add(until - seconds, until)

    def seconds(self, now: float) -> float:
        """Return the time spent in this phase so far."""
        return self.closed + sum(now - window.start for window in self.open)

    def take(self, until: float) -> float:
        """Return the seconds in this phase since the last call, up to this time."""
        since, self._taken = self._taken, until
        running = sum(max(0.0, until - max(since, window.start)) for window in self.open)
        seconds = self._spans.take(until) + running
        self.covered += seconds
        return seconds

    def begins_with(self, at: float) -> bool:
        """Return whether a sample at this time is the first one of the phase."""
        return self.tally.samples == 0 and any(window.start <= at for window in self.open)

    def contains(self, at: float) -> bool:
        """Return whether the program was in this phase at a time, up to which its seconds have been taken."""
        return any(window.start <= at for window in self.open) or self._spans.covers(at)


class PhaseContext:
    """A named phase of the program: `with monitor.phase("train"):`, or `@monitor.phase("train")` above a function.

    Each call of a decorated function is one entry of the phase. Of a generator only the time inside of it counts: what its
    consumer does in between does not belong to the phase.
    """

    __slots__ = ("_entered", "_monitor", "_name", "_paused")

    def __init__(self, monitor: Monitor, name: str) -> None:
        self._monitor = monitor
        self._name = name
        self._entered: list[tuple[Phase, Window]] = []
        self._paused: Phase | None = None

    def __enter__(self) -> None:
        if (ledger := self._monitor.ledger) is not None:
            self._entered.append(ledger.enter(self._name))

    def __exit__(self, *error: object) -> None:
        if self._entered:
            phase, window = self._entered.pop()
            if phase.ledger is self._monitor.ledger:  # not after a stop, and not in a forked child
                phase.ledger.leave(phase, window)

    def __call__(self, function: F) -> F:
        from .measure import decorated

        # one context per call: calls may overlap
        inside: F = decorated(function, lambda: PhaseContext(self._monitor, self._name))
        return inside

    def pause(self) -> None:
        """Stop the time of the phase: a generator has yielded."""
        self._paused = self._entered[-1][0] if self._entered else None
        self.__exit__()

    def go_on(self) -> None:
        """Go on with the same entry; with a first one, if the monitor has started since then."""
        if self._paused is not None and self._paused.ledger is self._monitor.ledger:
            self._entered.append((self._paused, self._paused.ledger.go_on(self._paused)))
        else:
            self.__enter__()


def phase_of(monitor: Monitor, name: Any) -> PhaseContext:
    """Return the phase of a name; a function, as in `@monitor.phase` without a name, is decorated with a phase named like it."""
    if not callable(name):
        return PhaseContext(monitor, text(name))
    from .measure import name_of

    decorated: PhaseContext = PhaseContext(monitor, name_of(name))(name)
    return decorated


class Sharing:
    """The counters of one run; guarded by the ledger's lock."""

    def __init__(self) -> None:
        self._counters: dict[str, EnergyMeter] = {}
        self._activity = Shares()
        self._process_shares = Shares()
        self._cpu = CpuMeter()

    def add(self, snap: AgentSample, parts: Parts, seconds: float, fresh: bool) -> float | None:
        """Share a sample; `fresh` if its activity was just read. Returns the program's mean power in watts since it was last known."""
        self._share_activity(snap, parts, seconds, fresh)
        self._cpu.add(snap.program, parts, seconds, snap.at)
        self._share_processes(snap, parts, seconds)
        watts = self._share_energy(snap, parts, seconds)
        return _power(snap) if watts is None else watts

    def forget(self, tally: Tally) -> None:
        """Share nothing with a window that is complete."""
        for shares in (self._activity, self._process_shares, self._cpu):
            shares.forget(tally)
        for counter in self._counters.values():
            counter.forget(tally)

    def energy_known_until(self, at: float) -> bool:
        """Return whether every energy counter has been read since a time."""
        return all(read is None or read >= at for read in (shares.at for shares in self._counters.values()))

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

    def _share_energy(self, snap: AgentSample, parts: Parts, seconds: float) -> float | None:
        """Share the growth of the energy counters among the windows; return the program's mean power since they were last read."""
        watts: float | None = None
        parts = [(tally, part) for tally, part in parts if part > 0]
        for gpu in snap.snapshot.gpus:
            if gpu.uuid is None:
                continue
            if gpu.uuid not in self._counters:
                self._counters[gpu.uuid] = EnergyMeter()
            share = _share(gpu, snap.own)
            charged, mean = self._counters[gpu.uuid].add(gpu, parts, seconds, snap.at)
            for tally, joules in charged:
                tally.add_energy(gpu.uuid, joules, share)
            if mean is not None and (own := _own(mean, share)) is not None:
                watts = (watts or 0.0) + own
        return watts


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
