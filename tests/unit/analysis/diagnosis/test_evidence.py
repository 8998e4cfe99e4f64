"""What was not measured is missing, never zero; what the driver counted comes before what samples show; whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.running import LiveDiagnosis, RunningDiagnosis
from gpulse.analysis.diagnosis.window import carried, windows_of
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Verdict
from tests.unit.analysis.diagnosis.machines import QUIET, START, judged, keys, samples
from tests.unit.analysis.diagnosis.traces import unlisted

# A GPU that computes 30 % of the time, at every sample.
STARVED: dict[str, Any] = {
    "utilization": 30, "graphics_active": 30, "sm_active": 28, "tensor_active": 15, "dram_active": 9, "power_draw": 260,
}  # fmt: skip
WORKERS = {"cpu_percent": 5.0, "tree_cpu_percent": 395.0, "children": 4, "workers_running": 4, "thread_state": "lock"}


def fed(**process: Any) -> dict[str, Any]:
    return STARVED | {"processes": (process,)}


@pytest.mark.parametrize(
    ("process", "key"),
    [
        (WORKERS, "input_bound_cpu"),
        ({"cpu_percent": 100.0, "tree_cpu_percent": 100.0, "thread_state": "running"}, "host_bound"),
        (
            {"cpu_percent": 98.0, "tree_cpu_percent": 98.0, "thread_state": "lock"},
            "host_bound",
        ),  # autograd's own thread runs
        ({"cpu_percent": 420.0, "tree_cpu_percent": 420.0, "thread_state": "lock"}, "input_bound_cpu"),  # its threads
        ({"cpu_percent": 28.0, "tree_cpu_percent": 28.0, "thread_state": "sleep"}, "waiting"),
        ({"cpu_percent": 28.0, "tree_cpu_percent": 28.0, "thread_state": "disk", "tree_read": 9e8}, "input_bound_io"),
        ({"cpu_percent": 28.0, "tree_cpu_percent": 28.0, "thread_state": "network"}, "waiting"),
        (
            {"cpu_percent": 28.0, "tree_cpu_percent": 28.0, "thread_state": "poll", "command": "vllm serve m"},
            "underused",
        ),
        (
            {"cpu_percent": 28.0, "tree_cpu_percent": 40.0, "children": 4, "workers_blocked": 3, "workers_running": 0},
            "input_bound_io",
        ),
        (
            {"cpu_percent": 28.0, "tree_cpu_percent": 30.0, "children": 4, "workers_running": 0, "workers_blocked": 0},
            "waiting",
        ),
    ],
)
@pytest.mark.parametrize("interval", [0.25, 1.0])
def test_what_the_gpu_waits_for(process: dict[str, Any], key: str, interval: float) -> None:
    assert judged(fed(**process), interval=interval, seconds=40).key == key


def test_workers_that_were_not_read_are_not_absent() -> None:
    blind = {"cpu_percent": 5.0, "tree_cpu_percent": None, "children": None}
    found = judged(fed(**blind))
    assert (found.key, found.values["kind"]) == ("unknown", "no_children")
    assert found.advice == ("watch_processes",)


def test_lists_of_processes_that_were_skipped_are_the_last_ones() -> None:
    seen = samples(fed(**WORKERS), seconds=20, interval=0.2)
    assert diagnose(unlisted(seen, every=5))[0].key == diagnose(seen)[0].key == "input_bound_cpu"
    without = diagnose(unlisted(seen))[0]
    assert (without.key, without.values["kind"]) == ("unknown", "no_processes")


def test_a_list_is_not_carried_for_ever() -> None:
    seen = unlisted(samples({}, seconds=30, interval=1.0), every=30)
    listed = carried(windows_of(seen).windows()[0].rows)
    assert [processes is not None for processes in listed] == [True] * 7 + [False] * 23


@pytest.mark.parametrize("interval", [0.25, 1.0, 3.0])
def test_pauses_come_from_the_drivers_own_samples_at_any_interval(interval: float) -> None:
    """Work for 4.2 s, a pause of 1.8 s; over and over."""

    def working(second: float) -> bool:
        return second % 6.0 < 4.2

    def mean(second: float) -> float:
        parts = [working(second - interval + step * 0.05) for step in range(round(interval / 0.05))]
        return sum(parts) / len(parts)

    def trace(second: float) -> tuple[float, ...]:
        return tuple(
            98.0 if working(second - back * 0.2) else 0.0 for back in reversed(range(round(interval / 0.2) or 1))
        )

    chip: dict[str, Any] = {
        key: (lambda second, most=most: most * mean(second)) for key, most in (("sm_active", 92), ("tensor_active", 50))
    }
    chip |= {
        "utilization": lambda second: 98 if working(second) else 0,
        "graphics_active": lambda second: 98 * mean(second),
    }
    chip |= {"utilization_trace": trace, "processes": ({"thread_state": "running"},)}
    found = judged(chip, seconds=60, interval=interval)
    assert found.key == "stalls"
    assert found.values["period"] == pytest.approx(6.0, abs=0.3)
    assert found.values["length"] == pytest.approx(1.8, abs=0.4)
    assert found.values["cause"] == "thread"


def test_throttled_time_is_what_the_driver_counted() -> None:
    """Heat slows the GPU down in half of each second; a sample per second sees it always or never."""
    hot = {
        "throttle_reasons": ("sw_thermal_slowdown",),
        "throttle_time_thermal": lambda second: 100.0 + 0.39 * second,
        "clock_sm": 1400,
    }
    found = judged(hot, interval=1.0)
    assert found.key == "thermal_throttled"
    assert found.share == pytest.approx(0.39, abs=0.02)


def test_unread_reasons_are_no_reasons() -> None:
    assert keys(judged({"throttle_reasons": None})) == ["healthy"]


def _own(gpu: dict[str, Any], own: set[int]) -> Verdict:
    running = RunningDiagnosis()
    for one in samples(gpu, seconds=20):
        running.add(one, own=own)
    return running.diagnosis()[0]


def test_a_program_is_judged_by_its_own_processes() -> None:
    mine = {"pid": 1, "user": "me", "cpu_percent": 100.0, "tree_cpu_percent": 100.0, "memory_used": 1 << 30}
    stranger = {"pid": 2, "user": "ada", "sm_utilization": 95.0, "memory_used": 60 << 30}
    both = {"processes": (mine | {"sm_utilization": 0.0}, stranger)}
    found = _own(both, {1})
    assert (found.key, [one.pid for one in found.processes]) == ("not_used", [2])
    assert judged(both).key == "healthy"  # of the GPU


def test_a_leak_of_others_is_not_told_to_a_program() -> None:
    grows = {
        "pid": 2,
        "name": "bash",
        "cpu_percent": 0.0,
        "tree_cpu_percent": 0.0,
        "memory_used": lambda second: (10 + second) * (1 << 30),
        "running_time": 900.0,
    }
    gpu: dict[str, Any] = {"memory_used": lambda second: (30 + second) * (1 << 30), "processes": ({"pid": 1}, grows)}
    assert judged(gpu, seconds=40).key == "memory_leak"
    assert _own(gpu, {1}).key == "healthy"


def test_growth_that_slows_is_no_leak() -> None:
    def held(second: float) -> float:
        return float(10e9 + 40e9 * (1 - 0.8**second))

    gpu: dict[str, Any] = {"memory_used": held, "processes": ({"memory_used": held, "running_time": 900.0},)}
    assert judged(gpu, seconds=40).key == "healthy"


def _mig(*instances: dict[str, float], seconds: int = 20) -> list[Snapshot]:
    gib = float(1 << 30)
    found = []
    for second in range(seconds):
        parts = []
        for at, values in enumerate(instances):
            known: dict[str, Any] = {"uuid": f"MIG-{at}", "gpu_instance": at + 1, "compute_instance": 0}
            known |= {"memory_total": 20 * gib, "memory_used": 5 * gib, **values}
            process: dict[str, Any] = {
                "pid": 100 + at,
                "user": "ada",
                "memory_used": 5 * gib,
                "cpu_percent": 100.0,
                "tree_cpu_percent": 100.0,
            }
            parts.append(Gpu(known, processes=(Process(process),)))
        whole: dict[str, Any] = {
            "uuid": "GPU-0",
            "index": 0,
            "temperature": 50,
            "memory_used": 15 * gib,
            "memory_total": 80 * gib,
        }
        found.append(Snapshot(START + second, (Gpu(whole, instances=tuple(parts)),)))
    return found


def test_every_mig_instance_has_a_verdict_and_the_card_none_of_theirs() -> None:
    busy = {"sm_active": 95.0, "tensor_active": 60.0, "dram_active": 30.0, "graphics_active": 98.0}
    idle = dict.fromkeys(busy, 0.0)
    found = diagnose(_mig(busy, idle))
    assert [(one.uuid, one.index, one.instance) for one in found] == [("MIG-0", 0, "1/0"), ("MIG-1", 0, "2/0")]
    assert found[0].key == "healthy"
    assert found[1].key != "healthy"
    assert not any("gpu_reset" in one.advice for one in found)


def test_a_new_program_is_judged_by_itself_and_soon() -> None:
    live = LiveDiagnosis()
    old = {"pid": 1, "name": "old", **WORKERS}
    new = {"pid": 2, "name": "new", "running_time": 1000.0}

    def chip(key: str) -> Any:
        return lambda second: (
            STARVED[key]
            if second < 60
            else {"power_draw": 690}.get(key, 95 if key == "sm_active" else 99 if key != "tensor_active" else 60)
        )

    values: dict[str, Any] = {key: chip(key) for key in STARVED if key != "dram_active"}
    values["processes"] = lambda second: (old,) if second < 60 else (new,)
    told: list[tuple[float, str, str]] = []
    for one in samples(values, seconds=90, interval=1.0):
        if live.add(one):
            verdict = live.latest[0]
            told.append((one.time - START, verdict.key, verdict.processes[0].name if verdict.processes else ""))
    before = [entry for entry in told if entry[0] < 60]
    after = [entry for entry in told if entry[0] >= 60]
    assert {(key, name) for _, key, name in before} == {("input_bound_cpu", "old")}
    assert all(name == "new" for _, _, name in after)
    assert next(time for time, key, _ in after if key == "healthy") <= 75
    assert live.latest[0].since == pytest.approx(START + 60, abs=2)


def test_a_gpu_whose_program_has_ended_is_idle() -> None:
    live = LiveDiagnosis()
    ended: dict[str, Any] = {key: (lambda second, now=now: 95.0 if second < 30 else now) for key, now in QUIET.items()}
    ended |= {
        "processes": lambda second: ({},) if second < 30 else (),
        "memory_used": lambda second: 2e10 if second < 30 else 0.0,
    }
    for one in samples(ended, seconds=45, interval=1.0):
        live.add(one)
    assert live.latest[0].key == "idle"
    assert live.latest[0].processes == ()


def test_a_gpu_that_reports_no_activity_is_not_idle_in_its_budget() -> None:
    silent: dict[str, Any] = dict.fromkeys((*QUIET, "memory_used")) | {"processes": ()}
    verdict = judged(silent, seconds=20, interval=1.0)
    assert (verdict.key, verdict.values["kind"]) == ("unknown", "blind")
    assert verdict.budget is not None
    assert dict(verdict.budget.shares) == {"unread": 1.0}
    asleep = judged(silent | {"state": "asleep"}, seconds=20, interval=1.0)
    assert asleep.key == "idle"
    assert asleep.budget is not None
    assert dict(asleep.budget.shares) == {"idle": 1.0}


def test_a_process_that_holds_only_a_context_and_does_nothing_leaves_the_gpu_idle() -> None:
    resting = {"cpu_percent": 0.0, "tree_cpu_percent": 0.0, "thread_state": "poll", "memory_used": 400 << 20}
    light = QUIET | {"memory_used": 400 << 20, "processes": (resting,)}
    verdict = judged(light, seconds=20, interval=1.0)
    assert (verdict.key, verdict.severity, verdict.values["kind"]) == ("idle", "info", "held")
    assert judged(light | {"memory_used": 600 << 20}, seconds=20, interval=1.0).key == "idle_allocation"
    works = resting | {"cpu_percent": 100.0, "tree_cpu_percent": 100.0, "thread_state": "running"}
    assert judged(light | {"processes": (works,)}, seconds=20, interval=1.0).key == "host_bound"


def test_where_no_process_is_visible_that_is_said() -> None:
    verdict = judged(STARVED | {"processes": ()}, seconds=20, interval=1.0)
    assert (verdict.key, verdict.values["kind"], verdict.advice) == ("unknown", "hidden", ("find_holders",))
