"""CPU usage over time, from differences of CPU time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpulse.analysis.diagnosis.workload import backfilled
from gpulse.model.catalog import Process
from gpulse.monitor.messages import AgentSample
from tests.unit.monitor.agent_samples import START, Diary, sample


def busy(at: float, first: float, last: float) -> float:
    return max(0.0, min(at, last) - first)


@pytest.mark.parametrize(("first", "last"), [(0.0, 10.0), (10.0, 20.0), (3.0, 13.0)])
def test_a_program_busy_for_half_of_its_life_reads_50_percent(first: float, last: float) -> None:
    diary = Diary()
    rate, before = 0.0, 0.0
    for at in range(21):
        values: dict[str, float] = {"pid": 7, "cpu_time": busy(at, first, last)}
        if at % 5 == 0:  # the tree is walked every 5 s, and its rate is repeated in between
            rate, before = 100 * (busy(at, first, last) - before) / 5, busy(at, first, last)
            values["tree_cpu_time"] = before
        diary.at(at).add(AgentSample(START + at, sample(at).snapshot, Process(values | {"tree_cpu_percent": rate})))
    stats = diary.at(20).summary().program
    assert stats["tree_cpu_percent"].mean == pytest.approx(50.0)
    assert stats["cpu_percent"].mean == pytest.approx(50.0)


def test_cpu_time_is_shared_among_phases_by_time() -> None:
    diary = Diary()
    ends: list[float] = []
    end: Callable[[float], None] = ends.append
    for at in range(21):
        if at in (0, 10):
            end(at)
            end = diary.phase("work" if at == 0 else "rest", at)
        diary.at(at).add(AgentSample(START + at, sample(at).snapshot, Process({"pid": 7, "cpu_time": min(at, 10.0)})))
    summary = diary.at(20).summary()
    means = {phase.name: phase.program["cpu_percent"].mean for phase in summary.phases}
    assert means == pytest.approx({"work": 100.0, "rest": 0.0})


def test_a_slow_rate_stands_at_the_samples_before_it() -> None:
    times = [float(at) for at in range(16)]
    counts: list[float | None] = [at // 5 * 5.0 if at < 10 else 10.0 for at in range(16)]
    rates = backfilled(counts, times, [None] * 16)
    assert rates == [None] + [100.0] * 10 + [None] * 5
    assert backfilled([0.0, None, 1.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
    assert backfilled([1.0] * 8, [float(at) for at in range(8)], [40.0] * 8) == [40.0] + [0.0] * 7
