"""How often the edges of windows trigger a sample, and which values are held in between."""

from __future__ import annotations

import pytest

from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.listener import EdgeBudget
from gpulse.monitor.messages import LastValues, Request
from tests.unit.monitor.agent_samples import Diary


@pytest.fixture
def diary() -> Diary:
    return Diary()


def test_phases_that_change_now_and_then_are_sampled_at_every_edge() -> None:
    budget = EdgeBudget()
    assert all(budget.take(at * 2.0) for at in range(100))


def test_frequent_edges_are_bounded() -> None:
    budget = EdgeBudget()
    taken = sum(budget.take(at / 1000) for at in range(60_000))
    assert 60 / 0.6 <= taken <= 60 / 0.6 + 9


def test_edges_at_the_same_time_are_one_sample() -> None:
    budget = EdgeBudget()
    assert [budget.take(at) for at in (1.0, 1.001, 1.04, 1.06)] == [True, False, False, True]


def test_a_phase_that_proved_too_short_to_measure_triggers_nothing(diary: Diary) -> None:
    for step in range(100):
        diary.phase("step", step / 100)(step / 100 + 0.005)
    assert diary.edges == 1  # when it began for the first time
    end = diary.phase("step", 2.0)
    end(3.0)
    assert diary.edges == 2  # this one was long
    diary.phase("step", 4.0)
    assert diary.edges == 3


def test_a_measured_call_that_proved_too_short_triggers_nothing(diary: Diary) -> None:
    from gpulse.analysis.tally import Tally

    for step in range(5):
        window = diary.at(step / 100).open(Tally, lambda _: None, "step")
        assert diary.ledger.measuring == (step == 0)
        diary.ledger.drop(window)
    assert diary.edges == 1
    window = diary.at(1.0).open(Tally, lambda _: None, "step")
    diary.at(2.0).close(window)
    assert diary.edges == 2
    assert not diary.ledger.is_brief("step")


def gpu(processes: bool = False, **values: float) -> Gpu:
    gaps = {} if processes else {"processes": "skipped"}
    rows = (Process({"pid": 7}),) if processes else ()
    return Gpu({"uuid": "GPU-1", **values}, gaps, processes=rows)  # type: ignore[arg-type]


def test_held_values_complete_a_sample_without_them() -> None:
    held = LastValues()
    assert held.add(Snapshot(1.0, (gpu(True, sm_active=80.0, power_draw=1.0),), Host({})))
    later = Snapshot(1.1, (gpu(power_draw=2.0),), Host({}))
    assert not held.add(later)
    (full,) = held.complete(later).gpus
    assert (full.sm_active, full.power_draw, [one.pid for one in full.processes]) == (80.0, 2.0, [7])
    assert "processes" not in full.gaps


def test_a_value_that_could_not_be_read_is_not_held() -> None:
    held = LastValues()
    held.add(Snapshot(1.0, (gpu(True, sm_active=80.0),), Host({})))
    held.add(Snapshot(2.0, (Gpu({"uuid": "GPU-1"}, {"sm_active": "failed"}),), Host({})))
    (full,) = held.complete(Snapshot(2.1, (gpu(power_draw=2.0),), Host({}))).gpus
    assert full.sm_active is None


def test_activity_stands_for_the_time_since_it_was_last_read(diary: Diary) -> None:
    diary.sample(0.0, sm_active=0.0, power_draw=1.0)
    end_a = diary.phase("a", 0.0)
    diary.sample(0.5, power_draw=1.0)
    end_a(0.5)
    end_b = diary.phase("b", 0.5)
    diary.sample(0.8, power_draw=1.0)
    diary.sample(1.0, sm_active=50.0, power_draw=1.0)
    diary.sample(3.0, sm_active=100.0, power_draw=1.0)
    end_b(3.0)
    summary = diary.ledger.summary()
    a, b = summary.phase("a"), summary.phase("b")
    assert a is not None
    assert b is not None
    assert a.gpus[0].stats["sm_active"].mean == pytest.approx(50.0)
    assert b.gpus[0].stats["sm_active"].mean == pytest.approx((0.5 * 50 + 2 * 100) / 2.5)
    assert summary.gpus[0].stats["sm_active"].mean == pytest.approx((1 * 50 + 2 * 100) / 3, rel=1e-4)


def test_metrics_that_were_asked_for_are_read_with_every_sample() -> None:
    assert Request(pid=1).costly_every == 1.0
    assert Request(pid=1, metrics=["power_draw"]).costly_every == 1.0
    assert Request(pid=1, metrics=["sm_active"]).costly_every == 0.0
