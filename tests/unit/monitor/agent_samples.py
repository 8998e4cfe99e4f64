"""Looks made by hand, and a ledger whose clock stands where a test puts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpulse.analysis.summary import Summary
from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.messages import AgentSample
from gpulse.sampling.clock import SystemClock

if TYPE_CHECKING:
    from gpulse.model.metric import Value

UUID = "GPU-00000000-1111-2222-3333-444444444444"
START = 1000.0


def sample(at: float, **gpu: Value) -> AgentSample:
    """Return a look at one GPU, so many seconds after START."""
    return AgentSample(
        START + at, Snapshot(at, (Gpu({"uuid": UUID, "index": 0, "name": "H100", **gpu}),), Host({})), None
    )


class SetClock(SystemClock):
    """A clock that shows what a test has set: `time`, seconds of both kinds."""

    def __init__(self, time: float = START) -> None:
        self.time = time

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


class Diary:
    """A ledger that is watched from START on; `at` sets its clock, `edges` counts how often it asked for a sample."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.edges = 0
        self.ledger = Ledger(self._edge, clock=self.clock)
        self.ledger.watched = True

    def _edge(self) -> None:
        self.edges += 1

    def at(self, seconds: float) -> Ledger:
        """Return the ledger, with its clock so many seconds after START."""
        self.clock.time = START + seconds
        return self.ledger

    def sample(self, at: float, **gpu: Value) -> None:
        """Take a look at this time."""
        self.at(at).add(sample(at, **gpu))

    def phase(self, name: str, begin: float) -> Callable[[float], None]:
        """Begin a phase; the answer ends it."""
        phase, window = self.at(begin).enter(name)
        return lambda end: self.at(end).leave(phase, window)


def named(summary: Summary, name: str) -> Summary:
    """Return the summary of a phase that is there."""
    phase = summary.phase(name)
    assert phase is not None
    return phase


def mean(summary: Summary, key: str = "utilization") -> float:
    """Return the mean of a metric of the only GPU."""
    return summary.gpus[0].stats[key].mean
