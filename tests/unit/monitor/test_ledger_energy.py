"""The ledger: how the energy is shared among windows and phases."""

from __future__ import annotations

import contextvars
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.summary import Summary
from gpulse.analysis.tally import Tally
from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.messages import AgentSample
from gpulse.monitor.samples import Tags
from tests.unit.monitor.agent_samples import START, UUID, Diary, named


@pytest.fixture
def diary() -> Diary:
    return contextvars.Context().run(Diary)


# --- energy


def energy(summary: Summary) -> float | None:
    return summary.energy


def test_energy_is_shared_among_windows_by_time(diary: Diary) -> None:
    diary.sample(0.0, energy=1000.0)
    end_a = diary.phase("a", 1.0)
    diary.sample(2.0, energy=1200.0)  # 100 W: 100 J in the phase
    end_a(3.5)
    end_b = diary.phase("b", 3.5)
    diary.sample(4.0, energy=1600.0)  # 200 W: 300 J and 100 J
    end_b(5.0)
    diary.sample(6.0, energy=1800.0)  # 100 W: 100 J
    summary = diary.ledger.summary()
    assert energy(summary) == pytest.approx(800.0)
    assert energy(named(summary, "a")) == pytest.approx(400.0)
    assert energy(named(summary, "b")) == pytest.approx(200.0)


@pytest.mark.parametrize("asleep", [False, True])
def test_sinks_are_given_the_energy_that_the_summary_has(diary: Diary, asleep: bool) -> None:
    if asleep:
        diary.sample(0.2, power_draw=10.0)  # the counter cannot be read yet
    diary.sample(0.5, energy=1000.0, power_draw=100.0)  # half a second before, by power
    diary.sample(1.5, energy=1090.0, power_draw=100.0)
    diary.sample(2.5, power_draw=100.0)
    diary.sample(3.5, energy=1300.0, power_draw=100.0)
    (gpu,) = diary.ledger.summary().gpus
    taken = AgentSample(START, Snapshot(0.0, (Gpu({"uuid": UUID, "index": 0, "energy": 1300.0}),), Host({})), None)
    told = Tags(None, ["energy"], diary.ledger.energy).values(taken)["gpu0/energy"]
    assert told == pytest.approx(gpu.device_energy) == pytest.approx(332.0 if asleep else 350.0)


def test_a_phase_within_has_its_part_of_the_same_energy(diary: Diary) -> None:
    diary.sample(0.0, energy=0.0)
    end_train = diary.phase("train", 0.0)
    end_eval = diary.phase("eval", 2.0)
    diary.sample(4.0, energy=400.0)
    end_eval(4.0)
    end_train(4.0)
    summary = diary.ledger.summary()
    assert (energy(named(summary, "train")), energy(named(summary, "train/eval"))) == (400.0, 200.0)


def test_a_stale_value_is_no_standstill(diary: Diary) -> None:
    diary.sample(0.0, energy=1000.0)
    end = diary.phase("a", 0.0)
    for at in (1.0, 2.0):
        diary.sample(at, energy=1000.0)
    end(2.0)
    diary.sample(3.0, energy=1000.0)
    diary.sample(4.0, energy=1400.0)
    assert energy(named(diary.ledger.summary(), "a")) == pytest.approx(200.0)


def test_a_counter_that_falls_begins_anew(diary: Diary) -> None:
    diary.sample(0.0, energy=1000.0)
    diary.sample(2.0, energy=1200.0)
    diary.sample(4.0, energy=10.0)  # the driver was loaded again
    diary.sample(6.0, energy=110.0)
    assert energy(diary.ledger.summary()) == pytest.approx(300.0)


def test_a_short_window_has_no_energy(diary: Diary) -> None:
    diary.sample(0.0, energy=0.0)
    diary.phase("short", 0.0)(0.9)
    diary.phase("long", 1.0)(2.0)
    diary.sample(3.0, energy=300.0)
    summary = diary.ledger.summary()
    assert energy(named(summary, "short")) is None
    assert energy(named(summary, "long")) == pytest.approx(100.0)


def test_short_windows_of_one_phase_add_up_to_an_energy(diary: Diary) -> None:
    diary.sample(0.0, energy=0.0)
    for at in range(4):
        diary.phase("step", float(at))(at + 0.5)
        diary.sample(at + 1.0, energy=100.0 * (at + 1))
    assert energy(named(diary.ledger.summary(), "step")) == pytest.approx(200.0)


def test_energy_without_a_counter_is_integrated_from_power(diary: Diary) -> None:
    told: list[float] = []
    diary.ledger.charge = told.append
    diary.sample(0.0, power_draw=100.0)
    leave = diary.phase("train", 1.0)
    diary.sample(2.0, power_draw=200.0)
    leave(4.0)
    diary.sample(5.0, power_draw=300.0)
    summary = diary.ledger.summary()
    assert energy(summary) == pytest.approx(2 * 200.0 + 3 * 300.0, rel=1e-4)
    assert energy(named(summary, "train")) == pytest.approx(1 * 200.0 + 2 * 300.0)
    assert summary.gpus[0].energy_estimated
    assert told == [100.0, 200.0, 300.0]


def test_a_counter_is_preferred_to_power(diary: Diary) -> None:
    diary.sample(0.0, energy=0.0, power_draw=100.0)
    diary.sample(5.0, energy=900.0, power_draw=100.0)
    summary = diary.ledger.summary()
    assert energy(summary) == pytest.approx(900.0)
    assert not summary.gpus[0].energy_estimated


def test_neither_counter_nor_power_is_no_energy(diary: Diary) -> None:
    diary.sample(0.0, utilization=1)
    diary.sample(5.0, utilization=1)
    assert energy(diary.ledger.summary()) is None


def test_the_power_of_all_gpus_is_told_when_counters_have_moved(diary: Diary) -> None:
    told: list[float] = []
    diary.ledger.charge = told.append
    for at, joules in ((0.0, 0.0), (1.0, 0.0), (2.0, 100.0)):
        gpus = tuple(Gpu({"uuid": f"GPU-{number}", "energy": joules * number}) for number in (1, 2))
        diary.at(at).add(AgentSample(START + at, Snapshot(at, gpus, Host({})), None))
    assert told == [pytest.approx(150.0)]


def _same(tally: Tally) -> Tally:
    return tally


@given(
    reads=st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(1.0, 1000.0)), min_size=1, max_size=12),
    cuts=st.lists(st.floats(0.0, 60.0), max_size=6),
)
def test_windows_side_by_side_have_all_the_energy_together(reads: list[tuple[float, float]], cuts: list[float]) -> None:
    total = sum(seconds for seconds, _ in reads)
    edges = sorted({0.0, total, *(cut for cut in cuts if cut < total)})
    diary = Diary()
    tallies = [Tally() for _ in edges[1:]]
    diary.sample(0.0, energy=0.0)
    for tally, begin, end in zip(tallies, edges, edges[1:], strict=False):
        window = diary.at(begin).open(partial(_same, tally))
        window.end = START + end
    at = joules = 0.0
    for seconds, grown in reads:
        at, joules = at + seconds, joules + grown
        diary.sample(at, energy=joules)
    spread = sum(tally.gpus[UUID].energy or 0.0 for tally in tallies if UUID in tally.gpus)
    assert spread == pytest.approx(joules)
