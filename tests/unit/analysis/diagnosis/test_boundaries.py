"""The thresholds of verdicts, just below and at each: a changed number or comparison fails here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpulse.analysis.diagnosis.parts import launches
from tests.unit.analysis.diagnosis.machines import GIB, QUIET, judged, keys


def busy(share: float, **process: Any) -> dict[str, Any]:
    """A GPU whose chip works for this share of the time, in per cent, at every sample, with large kernels."""
    chip = {
        "utilization": share,
        "graphics_active": share,
        "sm_active": share,
        "tensor_active": 0.6 * share,
        "dram_active": 20,
    }
    return {**chip, "power_draw": 500, "processes": ({"cpu_percent": 100.0, "tree_cpu_percent": 100.0, **process},)}


CHIP: dict[str, Any] = {
    "sm_active": 95,
    "tensor_active": 0,
    "fp32_active": 2,
    "dram_active": 20,
    "graphics_active": 98,
    "utilization": 98,
}
SMALL = CHIP | {"sm_active": 50, "dram_active": 20}


@pytest.mark.parametrize(
    ("gpu", "key", "told"),
    [
        (busy(82.1), "host_bound", False),
        (busy(81.9), "host_bound", True),
        (busy(82.1, cpu_percent=5.0, tree_cpu_percent=400.0, children=4), "input_bound_cpu", False),
        (busy(81.9, cpu_percent=5.0, tree_cpu_percent=400.0, children=4), "input_bound_cpu", True),
        (busy(60, cpu_percent=5.0, tree_cpu_percent=204.9, children=4), "input_bound_cpu", True),
        (busy(60, cpu_percent=5.0, tree_cpu_percent=80.0, children=4), "input_bound_cpu", False),
        (busy(60, cpu_percent=5.0, tree_cpu_percent=5.0, children=0, tree_read=49e6), "input_bound_io", False),
        (busy(60, cpu_percent=5.0, tree_cpu_percent=5.0, children=0, tree_read=50e6), "input_bound_io", True),
        (CHIP | {"tensor_active": 21.9}, "healthy", False),
        (CHIP | {"tensor_active": 22.0}, "healthy", True),
        (CHIP | {"tensor_active": 40, "sm_active": 64.9, "graphics_active": 66, "utilization": 66}, "healthy", False),
        (CHIP | {"fp64_active": 29.9}, "healthy", False),
        (CHIP | {"fp64_active": 30.0}, "healthy", True),
        (CHIP | {"fp32_active": 19.9}, "fp32_no_tensor", False),
        (CHIP | {"fp32_active": 20.0}, "fp32_no_tensor", True),
        (CHIP | {"fp32_active": 60.0, "tensor_active": 5.0}, "fp32_no_tensor", False),
        (CHIP | {"dram_active": 44.9}, "memory_bandwidth", False),
        (CHIP | {"dram_active": 45.0}, "memory_bandwidth", True),
        (SMALL | {"dram_active": 44.9}, "small_batch", True),
        (SMALL | {"dram_active": 45.0}, "small_batch", False),
        (SMALL | {"sm_active": 63.9}, "small_batch", False),
        ({"memory_used": 131.9 * GIB}, "memory_pressure", False),
        ({"memory_used": 132.1 * GIB}, "memory_pressure", True),
        (
            {"throttle_reasons": lambda second: ("sw_power_cap",) if second % 10 < 0.5 else (), "power_limit": 600},
            "power_throttled",
            False,
        ),
        (
            {"throttle_reasons": lambda second: ("sw_power_cap",) if second % 10 < 1.5 else (), "power_limit": 600},
            "power_throttled",
            True,
        ),
        ({"throttle_reasons": ("sw_power_cap",), "power_limit": 666}, "power_throttled", False),
        ({"throttle_reasons": ("sw_power_cap",), "power_limit": 664}, "power_throttled", True),
        ({"clock_sm": 1684, "power_draw": 300}, "clocks_locked", False),
        ({"clock_sm": 1682, "power_draw": 300}, "clocks_locked", True),
        ({"clock_sm": 1682, "power_draw": 559}, "clocks_locked", True),
        ({"clock_sm": 1682, "power_draw": 561}, "clocks_locked", False),
        (
            {"clock_sm": 1682, "power_draw": None, "power_limit": None, "power_default_limit": None},
            "clocks_locked",
            False,
        ),
    ],
)
def test_a_verdict_is_told_from_its_threshold_on(gpu: dict[str, Any], key: str, told: bool) -> None:
    assert (key in keys(judged(gpu, seconds=40))) is told


@pytest.mark.parametrize(
    ("held", "cpu", "told"), [(499, 0.0, False), (500, 0.0, True), (500, 29.0, True), (500, 30.0, False)]
)
def test_memory_held_for_nothing(held: int, cpu: float, told: bool) -> None:
    process = {"memory_used": held << 20, "cpu_percent": cpu, "tree_cpu_percent": cpu, "running_time": 9000.0}
    found = judged(QUIET | {"memory_used": held << 20, "processes": (process,)}, seconds=40)
    assert (found.key == "idle_allocation") is told


@pytest.mark.parametrize(("rises", "told"), [(3, False), (6, True)])
def test_steps_that_make_a_leak(rises: int, told: bool) -> None:
    def held(second: float) -> float:
        return (20 + min(rises, int(second // 5))) * float(GIB)

    gpu: dict[str, Any] = {"memory_used": held, "processes": ({"memory_used": held},)}
    assert ("memory_leak" in keys(judged(gpu, seconds=5.0 * (rises + 1)))) is told


@pytest.mark.parametrize(("idle", "told"), [(0.149, True), (0.15, False)])
def test_a_thread_that_pauses_does_more_than_launching(idle: float, told: bool) -> None:
    span: Any = SimpleNamespace(fill=0.2, busy=28.0, idle_share=idle)
    assert launches(span) is told
