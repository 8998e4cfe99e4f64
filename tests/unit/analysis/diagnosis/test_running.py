"""Diagnoses over hours: bounded memory, faults never lost, time added up."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.running import RunningDiagnosis, diagnosis_of
from gpulse.model.event import Event
from tests.unit.analysis.diagnosis.machines import GIB, QUIET, START, keys, samples


def test_a_short_run_is_judged_at_once() -> None:
    seen = samples({}, seconds=60, interval=1.0)
    assert diagnosis_of(seen) == diagnose(seen)


def test_hours_are_added_up() -> None:
    chip = {
        "tensor_active": lambda second: 50.0 if second < 4000 else 0.0,
        "dram_active": lambda second: 33.0 if second < 4000 else 88.0,
    }
    found = diagnosis_of(samples(chip, seconds=6000, interval=2.0))
    assert keys(found[0]) == ["healthy", "memory_bandwidth"]
    assert found[0].share == pytest.approx(2 / 3, abs=0.06)
    assert found.end - found.start == pytest.approx(5998, abs=2)


def test_a_gpu_that_was_lost_for_a_while_is_the_headline_of_hours() -> None:
    chip = {"state": lambda second: "lost" if 600 <= second < 640 else "ok"}
    found = diagnosis_of(samples(chip, seconds=5400, interval=2.0))
    assert keys(found[0])[0] == "lost"


@pytest.mark.parametrize("interval", [1.0, 5.0, 20.0])
@pytest.mark.parametrize(("start", "end"), [(1200, 1500), (240, 360), (280, 900)])
def test_an_outage_across_windows_has_its_whole_length_and_its_end(interval: float, start: float, end: float) -> None:
    for state, metric in (("lost", "state_lost"), ("timeout", "state_timeout")):
        chip = {"state": lambda second, state=state: state if start <= second < end else "ok"}
        found = diagnosis_of(samples(chip, seconds=1800, interval=interval))[0]
        assert {one.metric: one.value for one in found.evidence}[metric] == end - start
        assert found.values["end_time"] == START + end if state == "lost" else found.values["kind"] == "recovered"


def test_a_leak_in_one_hour_of_several_is_the_headline() -> None:
    def used(second: float) -> float:
        return (20 + min(60.0, max(0.0, second - 1000) / 20)) * GIB

    chip: dict[str, Any] = {"memory_used": used, "processes": ({"memory_used": used},)}
    found = diagnosis_of(samples(chip, seconds=6000, interval=2.0))
    assert keys(found[0]) == ["memory_leak"]


def test_a_moment_of_heat_in_hours_is_told_beside_the_verdict() -> None:
    chip = {"throttle_reasons": lambda second: ("sw_thermal_slowdown",) if 600 <= second < 630 else ()}
    found = diagnosis_of(samples(chip, seconds=6000, interval=2.0))
    assert keys(found[0]) == ["healthy"] or keys(found[0])[:2] == ["healthy", "thermal_throttled"]


def test_idle_time_between_jobs_does_not_count() -> None:
    chip: dict[str, Any] = {
        key: (
            lambda second, calm=calm, key=key: (
                calm if second > 900 else {"tensor_active": 50.0, "dram_active": 33.0}.get(key, 95.0)
            )
        )
        for key, calm in QUIET.items()
    }
    chip |= {"fp32_active": 2, "integer_active": 10, "power_draw": 600}
    chip |= {
        "processes": lambda second: ({},) if second <= 900 else (),
        "memory_used": lambda second: 20 * GIB if second <= 900 else 0,
    }
    found = diagnosis_of(samples(chip, seconds=6000, interval=2.0))
    assert keys(found[0]) == ["healthy"]


def test_events_of_a_history_add_faults_that_samples_do_not_show() -> None:
    running = RunningDiagnosis()
    for one in samples({}, seconds=60, interval=1.0):
        running.add(one)
    running.note([Event(START + 5, "lost", ("0",), uuids=("GPU-0",), value=79.0, until=START + 9)])
    found = running.diagnosis()
    assert keys(found[0]) == ["lost"]
    assert found[0].values["xid"] == 79.0


def test_memory_stays_bounded() -> None:
    running = RunningDiagnosis()
    for one in samples({}, seconds=4000, interval=1.0):
        running.add(one)
    assert len(running._builder.windows()[0]) <= 1600


def test_a_clock_set_back_is_survived() -> None:
    running = RunningDiagnosis()
    seen = samples({}, seconds=100, interval=1.0)
    for one in [*seen, *seen]:
        running.add(one)
    assert running.diagnosis()[0].key == "healthy"
