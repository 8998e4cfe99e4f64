"""What moments add up to."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gpulse.errors import RecordingError
from gpulse.model.snapshot import Snapshot
from gpulse.sinks.base import Mark
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.comparison import run_to_plain
from gpulse.surfaces.report.document import to_markdown
from gpulse.surfaces.report.html import to_html
from gpulse.surfaces.report.pages import run_document
from gpulse.surfaces.report.recorded_samples import RecordedSample
from tests.unit.snapshots import snapshots
from tests.unit.surfaces.report.runs import GIB, START, gpu, process, run_of, sample, samples


def test_energy_is_what_the_counter_grew() -> None:
    # the counter is read every five seconds and carried on in between
    run = run_of(sample(at, gpu(energy=1000.0 + at // 5 * 5 * 300.0)) for at in range(61))
    assert run.summary.energy == pytest.approx(60 * 300.0)
    assert not run.estimated


def test_energy_of_a_counter_that_was_reset_begins_anew() -> None:
    counter = [1000.0, 1300.0, 1600.0, 100.0, 400.0]
    run = run_of(sample(at, gpu(energy=joules)) for at, joules in enumerate(counter))
    assert run.summary.energy == pytest.approx(900.0)


def test_energy_without_a_counter_is_an_estimate_from_power() -> None:
    run = run_of(samples(61))
    assert run.estimated
    assert run.summary.energy == pytest.approx(60 * 500.0)


def test_energy_is_shared_among_phases_by_time() -> None:
    moments = [
        RecordedSample(sample(at, gpu(energy=at // 10 * 10 * 100.0)), phase="a" if 0 < at <= 15 else "b")
        for at in range(21)
    ]
    phases = {phase.name: phase.energy for phase in account(moments, "x").summary.phases}
    assert phases == {"a": pytest.approx(1500.0), "b": pytest.approx(500.0)}


def test_a_gap_is_told_and_not_counted() -> None:
    run = run_of(sample(at if at < 30 else at + 600) for at in range(60))
    assert run.summary.seconds == pytest.approx(59.0)
    assert run.missing == pytest.approx(600.0)
    assert [(event.kind, event.time - START, event.until) for event in run.events] == [("gap", 29.0, START + 630.0)]
    assert len(run.timeline.breaks) == 1


def test_a_process_over_its_gpus() -> None:
    one, other = process(7, sm_utilization=50.0), process(8, memory_used=10 * GIB)
    run = run_of(sample(at, gpu(0, one), gpu(1, one, other)) for at in range(3601))
    uses = {use.process.pid: use for use in run.uses}
    assert uses[7].gpus == ["0", "1"]
    assert uses[7].hours == pytest.approx(1.5)  # a whole GPU, and half of the one that both hold
    assert uses[8].hours == pytest.approx(0.5)
    assert uses[7].peak == 60 * GIB
    assert uses[7].share == pytest.approx(50.0)
    assert uses[8].share is None


def test_steps_waiting_phases_and_marks() -> None:
    moments = [
        RecordedSample(
            sample(at),
            phase="train" if at % 20 < 15 else "eval",
            step=at * 2,
            values={"train/data_wait": 25.0},
            marks=[Mark("epoch", at // 20, START + at)] if at % 20 == 0 else (),
        )
        for at in range(41)
    ]
    run = account(moments, "x")
    assert run.summary.steps == 80
    assert run.summary.waited == pytest.approx(10.0)
    assert [(phase.name, phase.calls) for phase in run.summary.phases] == [("train", 3), ("eval", 2)]
    assert [(start - START, end - START, name) for start, end, name in run.bands][:2] == [
        (0.0, 15.0, "train"),
        (15.0, 20.0, "eval"),
    ]
    assert len(run.marks) == 3
    assert run.timeline.traces["training", "train/data_wait"].counts[0] == 1


def test_nothing_is_no_run() -> None:
    with pytest.raises(RecordingError, match="contains no samples"):
        account([], "empty.ndjson")


def test_two_gpus_of_one_number_are_kept_apart() -> None:
    run = run_of(sample(at, gpu(0), gpu(0, uuid="GPU-other", power_draw=1.0)) for at in range(3))
    assert len(run.labels) == len(set(run.labels)) == 2
    assert [stats.mean for stats in run.stats("power_draw")] == [pytest.approx(500.0), pytest.approx(1.0)]


@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(snapshots(believable=True), min_size=1, max_size=4))
def test_any_snapshots_make_a_report(some: list[Snapshot]) -> None:
    run = run_of(some)
    document = run_document(run)
    assert to_html(document).count("<h1>") == 1
    assert to_markdown(document).startswith("# ")
    assert run_to_plain(run)["schema"] == 1
