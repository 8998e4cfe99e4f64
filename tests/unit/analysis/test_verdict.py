"""What is said of a run's figures, and what is left unsaid."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.summary import GpuSummary, Stats, Summary
from gpulse.analysis.verdict import verdict


def stats(**means: float) -> dict[str, Stats]:
    return {key: Stats(mean, mean, mean, mean, mean) for key, mean in means.items()}


def gpu(
    index: int = 0,
    *,
    state: str = "ok",
    idle: float | None = 0.0,
    throttled: dict[str, float] | None = None,
    **means: float,
) -> GpuSummary:
    return GpuSummary(
        index=index,
        uuid=f"GPU-{index}",
        name="H100",
        memory_total=80e9,
        stats=stats(**means),
        energy=None,
        idle_share=idle,
        throttled_seconds=max((throttled or {"": 0.0}).values()),
        throttled=throttled or {},
        power_capped=90.0,
        state=state,
    )


def run(
    *gpus: GpuSummary, seconds: float = 100.0, waited: float = 0.0, host: Any = None, program: Any = None
) -> Summary:
    return Summary(
        "",
        seconds,
        samples=100,
        steps=0,
        items=0.0,
        waited=waited,
        gpus=gpus,
        host=stats(**(host or {})),
        program=stats(**(program or {})),
    )


BUSY: dict[str, Any] = {
    "utilization": 97.0,
    "sm_active": 90.0,
    "tensor_active": 50.0,
    "dram_active": 30.0,
    "memory_percent": 80.0,
}


def test_nothing_is_said_of_a_short_run_or_one_without_gpus() -> None:
    assert verdict(run(gpu(idle=100.0), seconds=9.9)) == []
    assert verdict(run()) == []
    assert verdict(run(gpu(idle=100.0), seconds=10.0)) == ["GPU 0 was idle 100 % of the time."]


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert verdict(run(gpu(idle=None))) == []
    assert verdict(run(gpu(utilization=90.0))) == []


@pytest.mark.parametrize(
    ("figures", "cores", "reason"),
    [
        ({"waited": 10.0, "program": {"tree_cpu_percent": 400.0}}, 4, "waited for data 10 %"),
        ({"waited": 9.0, "program": {"tree_cpu_percent": 360.0}}, 4, "all 4 CPUs of the program were busy"),
        ({"program": {"tree_cpu_percent": 359.0}, "host": {"iowait": 20.0}}, 4, "waited for disks (20 %)"),
        ({"program": {"tree_cpu_percent": 100.0}, "host": {"iowait": 19.0}}, 4, "one CPU was busy"),
        ({"program": {"tree_cpu_percent": 100.0}}, 1, "one CPU was busy"),
        ({"program": {"tree_cpu_percent": 100.0}}, None, "one CPU was busy"),
        ({"program": {"tree_cpu_percent": 200.0}}, None, "GPU 0 was idle 20 % of the time."),
        ({}, 4, "GPU 0 was idle 20 % of the time."),
    ],
)
def test_an_idle_gpu_is_told_with_what_went_on_meanwhile(figures: Any, cores: float | None, reason: str) -> None:
    (sentence,) = verdict(run(gpu(idle=20.0), **figures), cores)
    assert sentence.startswith("GPU 0 was idle 20 % of the time")
    assert reason in sentence


def test_the_busiest_gpu_speaks_for_all() -> None:
    found = verdict(run(gpu(0, idle=90.0, utilization=10.0), gpu(1, idle=30.0, utilization=60.0)))
    assert found == ["GPU 1 was idle 30 % of the time."]
    assert verdict(run(gpu(0, idle=90.0, utilization=10.0), gpu(1, idle=19.0, utilization=60.0))) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "limited by computing, as it should be (SM 90 %, tensor 50 %)"),
        ({"tensor_active": 39.0}, "was busy (SM 90 %, tensor 39 %, DRAM 30 %)"),
        ({"tensor_active": 2.0}, "hardly used its tensor cores (2 %)"),
        ({"tensor_active": 19.0, "dram_active": 60.0}, "limited by its memory bandwidth (DRAM 60 %"),
        ({"sm_active": 24.0}, "97 % utilised with its SMs 24 % active"),
    ],
)
def test_a_busy_gpu_is_told_at_what(changes: dict[str, Any], words: str) -> None:
    (sentence,) = verdict(run(gpu(**(BUSY | changes))))
    assert words in sentence


@pytest.mark.parametrize("missing", ["utilization", "sm_active", "tensor_active", "dram_active"])
def test_without_activity_counters_nobody_guesses(missing: str) -> None:
    assert verdict(run(gpu(**{key: value for key, value in BUSY.items() if key != missing}))) == []


def test_slowing_down_is_told_once_for_each_cure_and_a_power_cap_never() -> None:
    hot = [gpu(at, **BUSY, throttled={"sw_thermal_slowdown": 10.0 * at}) for at in (1, 2, 3)]
    braked = gpu(4, **BUSY, throttled={"hw_power_brake_slowdown": 1.0})
    hardly = gpu(5, **BUSY, throttled={"hw_power_brake_slowdown": 0.9})
    assert verdict(run(*hot, braked, hardly))[:2] == [
        "GPU 1, GPU 2, GPU 3 were slowed down up to 30 % of the time: look at the cooling.",
        "GPU 4 was slowed down 1 % of the time: look at the power supply and cables.",
    ]
    assert len(verdict(run(hardly))) == 1
    assert "slowed down 100 % of" in verdict(run(gpu(**BUSY, throttled={"hw_thermal_slowdown": 100.2})))[0]


def test_faults_come_first() -> None:
    found = verdict(run(gpu(0, **BUSY), gpu(1, state="lost", idle=None), gpu(2, state="timeout", idle=None)))
    assert found[:2] == ["GPU 1 was lost.", "GPU 2 stopped answering."]


def test_memory_that_was_nearly_full_or_half_empty() -> None:
    assert verdict(run(gpu(**(BUSY | {"memory_percent": 95.0}))))[1].startswith("GPU 0 came within 5 % of its memory")
    small = gpu(utilization=40.0, memory_percent=50.0)
    assert verdict(run(small)) == ["GPU 0 had half of its memory free: a larger batch may use it better."]
    assert verdict(run(gpu(utilization=51.0, memory_percent=50.0))) == []
    assert verdict(run(gpu(utilization=4.0, memory_percent=50.0))) == []


def test_gpus_that_did_nothing_are_named_but_not_those_that_do_not_tell() -> None:
    gpus = [gpu(0, **BUSY), gpu(1, utilization=0.0, idle=100.0), gpu(2, utilization=0.9), gpu(3, idle=None)]
    assert verdict(run(*gpus))[-1] == "GPU 1, GPU 2 did nothing."
    assert not any("did nothing" in line for line in verdict(run(*gpus[1:])))
