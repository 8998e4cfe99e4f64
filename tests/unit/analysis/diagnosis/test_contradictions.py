"""No verdict contradicts its own time budget or the readings: idle, memory held for nothing, and healthy need evidence."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.analysis.concerns import standing_of
from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.window import WANTED
from gpulse.analysis.events import IDLE_HELD
from gpulse.analysis.readings import UNLISTED
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import WAITS, WORK
from gpulse.present.verdicts import advice, title
from gpulse.recordings.demo import simulated_samples
from tests.unit.analysis.diagnosis.machines import CARD, COUNTERS, GIB, QUIET, START, judged, samples
from tests.unit.analysis.diagnosis.test_recordings import recording
from tests.unit.analysis.diagnosis.test_traces import EVERY, trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpulse.model.verdict import Budget, Verdict

MIB = 1 << 20
EMPTY = QUIET | {"memory_used": 0, "clock_sm": 345, "power_draw": 80}


def check(snapshots: Sequence[Snapshot]) -> None:
    """Check everything that is said of every GPU of a window."""
    diagnosis = diagnose(snapshots)
    for verdict in diagnosis:
        gpus = [gpu for one in snapshots for gpu in one.gpus if gpu.uuid == verdict.uuid]
        assert verdict.budget is not None
        if verdict.key == "idle":
            check_idle(verdict, verdict.budget, gpus)
        if verdict.key == "idle_allocation":
            check_held(verdict.budget)
        if verdict.key == "healthy":
            shares = verdict.budget.shares
            work = sum(shares.get(part, 0.0) for part in (*WORK, "throttled"))
            assert work >= sum(shares.get(part, 0.0) for part in WAITS)
    for gpu in snapshots[-1].gpus:
        if standing_of(gpu, diagnosis) in ("healthy", "idle"):
            assert gpu.state in ("ok", "asleep")
            assert all(
                one.key not in ("unknown", "lost", "driver_unresponsive") for one in diagnosis if one.uuid == gpu.uuid
            )


def check_idle(verdict: Verdict, budget: Budget, gpus: Sequence[Gpu]) -> None:
    if all(gpu.state == "asleep" for gpu in gpus):
        return
    assert sum(budget.shares.get(part, 0.0) for part in (*WAITS, "starting", "unread")) < 0.01
    assert budget.shares.get("idle", 0.0) >= 0.85
    assert any("processes" not in gpu.gaps and gpu.state == "ok" for gpu in gpus)
    drawn = any(process.type == "G" for gpu in gpus for process in gpu.processes)
    for gpu in gpus:
        held = sum(process.memory_used or 0.0 for process in gpu.processes)
        assert gpu.memory_used is None or gpu.memory_used - held < UNLISTED
        assert all(process.type == "G" or (process.memory_used or 0.0) < IDLE_HELD for process in gpu.processes)
        assert drawn or ((gpu.utilization or 0.0) < 2 and (gpu.sm_active or 0.0) < 0.5)
    clocks = [gpu.clock_sm for gpu in gpus if gpu.clock_sm is not None]
    power = [gpu.power_draw for gpu in gpus if gpu.power_draw is not None]
    low = bool(clocks) and sum(clocks) / len(clocks) < 0.5 * max(gpu.clock_sm_max or 0.0 for gpu in gpus)
    assert low or not power or sum(power) / len(power) < 0.3 * max(gpu.power_limit or 1e9 for gpu in gpus)


def check_held(budget: Budget) -> None:
    assert budget.shares.get("idle", 0.0) >= 0.5
    assert sum(budget.shares.get(part, 0.0) for part in WAITS) < 0.5


def blinded(snapshots: Sequence[Snapshot], how: str) -> list[Snapshot]:
    """Return a recording as a machine would give it that does not list processes, hides them, or has no counters."""

    def changed(gpu: Gpu) -> Gpu:
        if how == "denied":
            return gpu.replace(processes=(), gaps={**gpu.gaps, "processes": "denied"})
        if how == "hidden":
            return gpu.replace(processes=(), memory_unattributed=None)
        return gpu if how == "whole" else gpu.replace(**dict.fromkeys(COUNTERS))

    return [one.replace(gpus=tuple(map(changed, one.gpus))) for one in snapshots]


@pytest.mark.parametrize("how", ["whole", "denied", "hidden", "no counters"])
@pytest.mark.parametrize("name", EVERY)
def test_of_random_windows_of_recordings(name: str, how: str) -> None:
    snapshots, dice = blinded(list(trace(name)), how), random.Random(f"{name} {how}")
    check(snapshots)
    for _ in range(6):
        first = dice.randrange(len(snapshots) - 20)
        check(snapshots[first : first + dice.randrange(20, len(snapshots))])


@pytest.mark.parametrize("how", ["whole", "denied", "hidden", "no counters"])
@pytest.mark.parametrize("mixed", [False, True])
def test_of_windows_of_the_simulated_machine(mixed: bool, how: str) -> None:
    snapshots = blinded([*simulated_samples(START, 600.0, 1.0, WANTED, mixed)], how)
    for first in range(0, 540, 90):
        check(snapshots[first : first + 60])


@pytest.mark.parametrize("how", ["denied", "hidden"])
def test_a_notebook_whose_processes_are_hidden_is_not_idle(how: str) -> None:
    (verdict,) = diagnose(blinded(recording("notebook"), how))
    assert verdict.key == "unknown"
    assert title(verdict).startswith("Cannot tell")
    assert any("fuser" in text or "gpulse" in text for text in advice(verdict))


LEVELS: dict[str, st.SearchStrategy[Any]] = {
    "utilization": st.sampled_from([None, 0, 0, 1, 7, 60]),
    "sm_active": st.sampled_from([None, 0.0, 0.0, 0.01, 0.7, 40.0]),
    "memory_used": st.sampled_from([None, 0, 4 * MIB, 260 * MIB, 759 * MIB, 7 * GIB]),
    "power_draw": st.sampled_from([None, 80, 124, 169, 400]),
    "clock_sm": st.sampled_from([None, 345, 1980]),
    "state": st.sampled_from(["ok", "ok", "ok", "ok", "lost", "timeout", "asleep"]),
}
WINDOWS = st.fixed_dictionaries(
    {
        "levels": st.lists(st.fixed_dictionaries(LEVELS), min_size=1, max_size=4),
        "interval": st.sampled_from([0.2, 1.0, 5.0]),
        "list": st.sampled_from(["read", "denied", "holder", "display"]),
    }
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(window=WINDOWS)
def test_of_random_windows(window: dict[str, Any]) -> None:
    check([*machine(window)])


def machine(window: dict[str, Any]) -> list[Snapshot]:
    found = []
    for at in range(40):
        level = dict(window["levels"][at % len(window["levels"])])
        state = level.pop("state")
        held = level["memory_used"] or 0
        holder = {
            "type": "G" if window["list"] == "display" else "C",
            "memory_used": held,
            "cpu_percent": 0.0,
            "tree_cpu_percent": 0.0,
        }
        there = [holder] if window["list"] in ("holder", "display") else []
        (one,) = samples({**level, "processes": there}, seconds=0.1, interval=0.1)
        gpu = one.gpus[0]
        if state != "ok":
            gpu = Gpu({"index": 0, "uuid": gpu.uuid or ""}, state=state)
        elif window["list"] == "denied":
            gpu = gpu.replace(gaps={"processes": "denied"})
        found.append(Snapshot(START + at * window["interval"], (gpu,), one.host))
    return found


@pytest.mark.parametrize("counters", [True, False])
@pytest.mark.parametrize("interval", [0.2, 0.5, 1.0])
def test_a_service_that_computes_8_ms_every_second_does_not_run_nothing(interval: float, counters: bool) -> None:
    def share(second: float) -> float:
        """Return the percent of the last `interval` seconds in which a kernel ran, 8 ms at 0, 1.1, 2.2 and so on."""
        ran = sum(
            max(0.0, min(second, start + 0.008) - max(second - interval, start))
            for start in (1.1 * n for n in range(60))
        )
        return 100 * ran / interval

    activity: dict[str, Any] = {
        "utilization": share,
        "sm_active": lambda second: 0.3 * share(second),
        "graphics_active": share,
    }
    activity |= {} if counters else dict.fromkeys(COUNTERS)
    values = QUIET | activity | {"memory_used": 759 * MIB, "power_draw": 131}
    resting = {"memory_used": 759 * MIB, "cpu_percent": 1.0, "tree_cpu_percent": 1.0}
    verdict = judged(values | {"processes": (resting,)}, seconds=60, interval=interval)
    assert verdict.key not in ("idle", "idle_allocation"), title(verdict)


def test_what_rests_is_still_said_to_rest() -> None:
    assert judged(EMPTY | {"processes": ()}).key == "idle"
    resting = {"memory_used": 759 * MIB, "cpu_percent": 0.0, "tree_cpu_percent": 0.0}
    assert judged(QUIET | {"memory_used": 759 * MIB, "processes": (resting,)}).key == "idle_allocation"


@pytest.mark.parametrize(
    "wrong", [{"memory_used": 7 * GIB}, {"power_draw": 400, "clock_sm": 1980}, {"utilization": 7}, {"sm_active": 0.7}]
)
def test_one_reading_is_enough_not_to_say_idle(wrong: dict[str, Any]) -> None:
    verdict = judged(EMPTY | {"processes": ()} | wrong)
    assert verdict.key != "idle"


def test_without_a_list_of_processes_nobody_says_idle() -> None:
    denied = [
        one.replace(gpus=tuple(gpu.replace(gaps={"processes": "denied"}) for gpu in one.gpus))
        for one in samples(EMPTY | {"processes": ()})
    ]
    (verdict,) = diagnose(denied)
    assert (verdict.key, title(verdict)) == (
        "unknown",
        "Cannot tell whether the GPU is idle: its processes were not read.",
    )


def test_how_a_gpu_stands() -> None:
    def standing(values: dict[str, Any], **changes: Any) -> str:
        window = [one.replace(gpus=tuple(gpu.replace(**changes) for gpu in one.gpus)) for one in samples(values)]
        return standing_of(window[-1].gpus[0], diagnose(window))

    assert standing(dict(CARD)) == "healthy"
    assert standing(EMPTY | {"processes": ()}) == "idle"
    assert standing(EMPTY | {"processes": ()}, gaps={"processes": "denied"}) == "unjudged"
    assert standing(dict.fromkeys(("utilization", *COUNTERS))) == "unjudged"
    assert standing(dict(CARD), state="timeout") == "problem"
    assert standing_of(Gpu({"index": 0, "uuid": "GPU-0"}), diagnose([])) == "unjudged"
