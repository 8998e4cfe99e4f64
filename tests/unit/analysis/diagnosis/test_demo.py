"""The simulated machine: each of its stories gets its verdict, and without them nothing is found."""

from __future__ import annotations

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.window import WANTED
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from tests.unit.analysis.diagnosis.machines import QUIET, keys, samples

STORIES = ["healthy"] * 2 + ["idle"] * 2 + ["input_bound_cpu", "memory_leak", "thermal_throttled", "idle_allocation"]


def watched(seconds: float, interval: float) -> list[Snapshot]:
    now = [0.0]
    sampler = Sampler(SimulatedSource(clock=lambda: now[0]), WANTED).open()
    found = []
    for step in range(round(seconds / interval)):
        now[0] = step * interval
        one = sampler.read()
        found.append(Snapshot(1e9 + now[0], one.gpus, one.host, one.driver, one.problems))
    sampler.close()
    return found


@pytest.mark.parametrize(("seconds", "interval"), [(40.0, 1.0), (30.0, 0.25), (15.0, 0.5)])
def test_each_story_gets_its_verdict(seconds: float, interval: float) -> None:
    assert [verdict.key for verdict in diagnose(watched(seconds, interval))] == STORIES


def test_two_seconds_tell_no_wait_and_no_idle_time_of_programs_that_were_there_before() -> None:
    found = diagnose(watched(60.0, 0.25)[40:48])
    assert [verdict.key for verdict in found] == [
        *("healthy", "healthy", "idle", "idle", "unknown", "healthy", "thermal_throttled", "idle_allocation")
    ]
    assert found[4].values["kind"] == "short"
    assert found[6].budget is not None
    assert found[6].budget.shares.get("idle", 0.0) < 0.05


def test_one_dip_in_three_seconds_is_no_wait() -> None:
    found = diagnose(watched(3.25, 0.25))
    assert (found[4].key, found[5].key) == ("input_bound_cpu", "healthy")


def test_a_job_that_starts_again_after_its_end_is_judged_without_its_start() -> None:
    seen = watched(150.0, 1.0)
    first = diagnose(seen[20:80])[5]
    assert first.key == "out_of_memory"
    again = diagnose(seen[90:150])[5]
    assert again.key == "memory_leak"


def test_an_idle_machine_is_silent() -> None:
    empty = QUIET | {
        "processes": (),
        "memory_used": 0,
        "throttle_reasons": ("gpu_idle",),
        "clock_sm": 345,
        "pcie_gen": 1,
    }
    found = diagnose(samples(*([empty] * 8), seconds=60, interval=1.0))
    assert [keys(verdict) for verdict in found] == [["idle"]] * 8
