"""The energy of phases: whatever their pattern, together they have the energy of the run."""

from __future__ import annotations

import contextvars
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.summary import Summary
from gpulse.monitor.windows import Spans
from tests.unit.monitor.agent_samples import START, Diary

WATTS = 685.0


def joules(summary: Summary | None) -> float:
    assert summary is not None
    assert summary.energy is not None
    return summary.energy


class Run:
    """Phases one after another, with a sample every `interval` seconds and the counter in every `read`-th of them."""

    def __init__(self, interval: float, read: int, watts: dict[str, float] | None = None) -> None:
        self.diary = Diary()
        self.now = self.used = 0.0
        self.watts = watts or {}
        self._interval, self._read, self._count = interval, read, 0
        self._counter = 0.0
        self._due = 0.0
        self._phase = ""
        self.sample()

    def sample(self, last: bool = False) -> None:
        if last or self._count % self._read == 0:
            self._counter = self.used
        self._count += 1
        self.diary.sample(self.now, energy=5000.0 + self._counter, power_draw=self._power())
        self._due = self.now + self._interval

    def phase(self, name: str, seconds: float) -> None:
        end = self.diary.phase(name, self.now)
        self._phase = name
        self.go(seconds)
        self._phase = ""
        end(self.now)

    def go(self, seconds: float) -> None:
        end = self.now + seconds
        while self._due < end:
            self._pass(self._due)
            self.sample()
        self._pass(end)

    def summary(self) -> Summary:
        self.sample(last=True)
        return self.diary.ledger.summary()

    def _power(self) -> float:
        return self.watts.get(self._phase, WATTS)

    def _pass(self, to: float) -> None:
        self.used += self._power() * (to - self.now)
        self.now = to
        self.diary.at(to)


def test_two_alternating_phases_of_07_seconds() -> None:
    run = Run(1.0, 5)
    for _ in range(6):
        run.phase("forward", 0.7)
        run.phase("backward", 0.7)
    summary = run.summary()
    assert joules(summary.phase("forward")) == pytest.approx(6 * 0.7 * WATTS, rel=0.02)
    assert joules(summary.phase("backward")) == pytest.approx(6 * 0.7 * WATTS, rel=0.02)
    assert joules(summary) == pytest.approx(12 * 0.7 * WATTS, rel=0.001)


def test_short_windows_of_one_phase_add_up() -> None:
    run = Run(1.0, 5)
    for _ in range(30):
        run.phase("step", 0.2)
    summary = run.summary()
    assert joules(summary.phase("step")) == pytest.approx(30 * 0.2 * WATTS, rel=0.02)


def test_power_tells_phases_apart_between_two_readings_of_the_counter() -> None:
    run = Run(0.4, 1000, {"load": 100.0, "train": 700.0})
    for _ in range(3):
        run.phase("load", 2.1)
        run.phase("train", 2.1)
    summary = run.summary()
    assert joules(summary.phase("load")) < joules(summary.phase("train")) / 3  # by time they would be equal
    assert joules(summary.phase("load")) + joules(summary.phase("train")) == pytest.approx(joules(summary))


def test_the_time_before_the_first_sample_is_charged_at_its_power() -> None:
    diary = contextvars.Context().run(Diary)
    end = diary.phase("train", 0.0)
    diary.sample(0.5, energy=1000.0, power_draw=400.0)
    end(2.0)
    diary.sample(2.0, energy=1600.0, power_draw=400.0)
    summary = diary.ledger.summary()
    assert joules(summary.phase("train")) == joules(summary) == pytest.approx(800.0)


@given(
    phases=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.floats(0.001, 4.0), st.sampled_from([1, 3, 40])),
        min_size=1,
        max_size=12,
    ),
    interval=st.sampled_from([0.1, 0.37, 1.0, 5.0]),
    read=st.integers(1, 7),
    watts=st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(50.0, 700.0)),
)
def test_the_sum_of_phases_is_the_energy_of_the_run(
    phases: list[tuple[str, float, int]], interval: float, read: int, watts: dict[str, float]
) -> None:
    run = Run(interval, read, watts)
    for name, seconds, times in phases:
        for _ in range(times):
            run.phase(name, seconds / times)
    alone = run.now >= 1.0
    run.go(0.0 if alone else 1.0)  # the energy of less than a second is not told
    summary = run.summary()
    known = sum(
        tally.energy or 0.0 for phase in run.diary.ledger._phases.values() for tally in phase.tally.gpus.values()
    )
    whole = joules(summary)
    assert whole == pytest.approx(run.used, rel=0.02)
    if alone:
        assert known == pytest.approx(whole, rel=0.02)
    else:
        assert known <= whole * 1.001


@given(
    windows=st.lists(st.tuples(st.floats(0.0, 0.01), st.floats(0.0005, 0.01)), min_size=1, max_size=700),
    cuts=st.lists(st.floats(0.0, 15.0), max_size=5),
)
def test_no_time_is_lost_when_spans_are_merged(windows: list[tuple[float, float]], cuts: list[float]) -> None:
    spans, now, total = Spans(), 0.0, 0.0
    edges = sorted(cuts)
    taken = 0.0
    for gap, seconds in windows:
        start, now = now + gap, now + gap + seconds
        spans.add(start, now)
        total += seconds
        while edges and edges[0] <= now:
            taken += spans.take(edges.pop(0))
    assert len(spans._spans) <= 257
    assert taken + spans.take(now) == pytest.approx(total)


def test_a_phase_is_taken_up_to_a_time_within_an_open_window() -> None:
    diary = contextvars.Context().run(Diary)
    end = diary.phase("a", 0.0)
    phase = diary.ledger._phases["a"]
    times = [START + at for at in (1.0, 1.5, 4.0)]
    assert [phase.take(times[0]), phase.take(times[1])] == [pytest.approx(1.0), pytest.approx(0.5)]
    end(3.0)
    assert phase.take(times[2]) == pytest.approx(1.5)
    assert [later > before for before, later in pairwise(times)] == [True, True]
