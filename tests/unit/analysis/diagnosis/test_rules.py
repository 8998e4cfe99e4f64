"""Each rule on a machine made for it, and on its nearest neighbors."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.diagnosis.rules import RULES
from tests.unit.analysis.diagnosis.machines import COUNTERS, GIB, QUIET, judged, keys


def burst(period: float, length: float, level: float) -> Any:
    """Return a function of time that is `level` in the first `length` seconds of each period and 0 in the rest."""
    return lambda second: level if second % period < length else 0.0


def working(period: float, length: float, sm: float = 80.0) -> dict[str, Any]:
    return {key: burst(period, length, sm) for key in ("utilization", "graphics_active", "sm_active")} | {
        "tensor_active": burst(period, length, 0.4 * sm), "dram_active": burst(period, length, 0.3 * sm), "power_draw": 250,
    }  # fmt: skip


DEVICE: dict[str, dict[str, Any]] = {
    "healthy": {},
    "healthy fp64": {"tensor_active": 0, "fp64_active": 60},
    "fp32_no_tensor": {"tensor_active": 0, "fp32_active": 76, "dram_active": 5},
    "memory_bandwidth": {"tensor_active": 0, "dram_active": 88, "power_draw": 500},
    "memory_bandwidth decode": {"tensor_active": 12, "dram_active": 62, "sm_active": 80, "power_draw": 420},
    "memory_latency": {"tensor_active": 0, "dram_active": 25, "sm_occupancy": 80, "integer_active": 12, "power_draw": 300},
    "small_batch": {"sm_active": 20, "sm_occupancy": 4, "tensor_active": 2, "dram_active": 4, "power_draw": 220},
}  # fmt: skip


@pytest.mark.parametrize("name", DEVICE)
def test_what_the_chip_does(name: str) -> None:
    verdict = judged(DEVICE[name])
    assert verdict.key == name.split()[0]
    assert not verdict.also


def test_kernels_too_small_for_their_launches() -> None:
    chip = {
        "utilization": 28,
        "graphics_active": 28,
        "sm_active": 2,
        "tensor_active": 0,
        "dram_active": 1,
        "power_draw": 125,
    }
    assert judged(chip).key == "launch_bound"
    assert judged(chip).confidence == "high"
    blind = judged(chip | dict.fromkeys(COUNTERS))
    assert (blind.key, blind.confidence) == ("host_bound", "medium")


def test_one_process_prepares_the_data() -> None:
    verdict = judged(working(2.0, 0.5))
    assert (verdict.key, verdict.processes[0].pid) == ("host_bound", 4242)


def test_all_cores_prepare_the_data() -> None:
    workers = {"processes": ({"cpu_percent": 40.0, "tree_cpu_percent": 1580.0, "children": 16},)}
    assert judged(working(2.0, 0.5) | workers, host={"cpu_percent": 99.0}).key == "input_bound_cpu"


def test_few_workers_all_busy_on_a_large_machine() -> None:
    workers = {"processes": ({"cpu_percent": 30.0, "tree_cpu_percent": 430.0, "children": 4},)}
    verdict = judged(working(2.0, 0.5) | workers, host={"cpu_percent": 27.0})
    assert verdict.key == "input_bound_cpu"
    assert "more_workers" in verdict.advice


def test_storage_is_waited_for() -> None:
    idle = {"processes": ({"cpu_percent": 15.0, "tree_cpu_percent": 60.0, "children": 4, "tree_read": 400e6},)}
    verdict = judged(working(2.0, 0.5) | idle, host={"iowait": 12.0, "disk_read": 400e6})
    assert (verdict.key, verdict.confidence) == ("input_bound_io", "high")


def test_copies_out_of_pageable_memory() -> None:
    chip = {
        "utilization": 20,
        "graphics_active": 4,
        "sm_active": 4,
        "tensor_active": 0,
        "dram_active": 1,
        "pcie_rx": 8e9,
        "power_draw": 145,
    }
    verdict = judged(chip)
    assert verdict.key == "transfer_bound"
    assert (verdict.values["direction"], verdict.values["memory"]) == ("h2d", "pageable")
    assert verdict.advice[0] == "pin_memory"


def test_pinned_copies_to_the_host() -> None:
    chip = {
        "utilization": 96,
        "graphics_active": 4,
        "sm_active": 4,
        "tensor_active": 0,
        "dram_active": 2,
        "pcie_tx": 45e9,
        "power_draw": 170,
    }
    verdict = judged(chip)
    assert (verdict.key, verdict.values["direction"], verdict.values["memory"]) == ("transfer_bound", "d2h", "pinned")


def test_copies_that_overlap_with_computing_are_no_limit() -> None:
    assert judged({"pcie_rx": 30e9}).key == "healthy"


def test_checkpoints_interrupt_training() -> None:
    saving: dict[str, Any] = {
        "processes": ({"cpu_percent": 95.0, "tree_write": burst(10.0, 2.0, 600e6)},),
        **{
            key: (lambda second, high=high: 0.0 if second % 10.0 < 2.0 else high)
            for key, high in {
                "utilization": 100.0,
                "graphics_active": 100.0,
                "sm_active": 94.0,
                "tensor_active": 50.0,
            }.items()
        },
        "dram_active": lambda second: 0.0 if second % 10.0 < 2.0 else 33.0,
    }
    verdict = judged(saving, seconds=45)
    assert verdict.key == "stalls"
    assert verdict.values["kind"] == "checkpoint"
    assert verdict.values["period"] == pytest.approx(10.0, abs=0.6)
    assert verdict.values["lost"] == pytest.approx(0.2, abs=0.06)
    assert keys(verdict) == ["stalls"]


def test_a_server_waits_for_requests() -> None:
    server = {"processes": ({"command": "vllm serve qwen", "cpu_percent": 8.0, "tree_cpu_percent": 9.0},)}
    assert judged(working(4.0, 0.5) | server).key == "underused"


def test_memory_held_by_an_idle_process() -> None:
    verdict = judged(QUIET | {"processes": ({"cpu_percent": 0.1, "tree_cpu_percent": 0.1},)})
    assert (verdict.key, verdict.processes[0].pid) == ("idle_allocation", 4242)


def test_memory_without_an_owner() -> None:
    assert judged(QUIET | {"processes": (), "memory_used": 3 * GIB}).key == "orphaned_memory"
    unknown = {"memory_used": None}  # what it holds is not known, so neither is the rest
    assert judged(QUIET | {"processes": (unknown,), "memory_used": 3 * GIB}).key != "orphaned_memory"


def test_an_empty_gpu_is_idle() -> None:
    assert judged(QUIET | {"processes": (), "memory_used": 0}).key == "idle"


def test_a_display_server_is_not_judged() -> None:
    drawing = QUIET | {"utilization": 4, "graphics_active": 4, "sm_active": 2, "memory_used": GIB}
    assert keys(judged(drawing | {"processes": ({"type": "G", "name": "Xorg", "memory_used": GIB},)})) == ["idle"]


def test_a_gpu_that_is_asleep_is_idle() -> None:
    assert (
        judged(
            {"state": "asleep", "utilization": None, "sm_active": None, "graphics_active": None, "processes": ()}
        ).key
        == "idle"
    )


def test_a_process_that_starts_is_not_judged_yet() -> None:
    starting = QUIET | {"processes": ({"running_time": lambda second: 5 + second},)}
    verdict = judged(starting)
    assert verdict.key == "starting"
    later = judged(QUIET | {"processes": ({"running_time": 900.0},)})
    assert (later.key, later.confidence) == ("host_bound", "low")


def test_two_processes_compute() -> None:
    both = {"processes": ({"sm_utilization": 60.0}, {"pid": 4343, "user": "grace", "sm_utilization": 39.0})}
    verdict = judged(both)
    assert (verdict.key, {one.pid for one in verdict.processes}) == ("contention", {4242, 4343})


def test_a_second_process_that_only_holds_memory_is_no_contention() -> None:
    assert (
        judged({"processes": ({"sm_utilization": 95.0}, {"pid": 4343, "sm_utilization": 0.0, "cpu_percent": 0.5})}).key
        == "healthy"
    )


def test_memory_that_grows_names_process_and_time() -> None:
    grown = lambda second: 20 * GIB + second * 0.5 * GIB  # noqa: E731
    verdict = judged({"memory_used": grown, "processes": ({"memory_used": grown},)}, seconds=60)
    assert keys(verdict) == ["memory_leak"]
    eta = verdict.values["eta"]
    assert isinstance(eta, tuple)
    assert float(eta[0]) < (139 - 50) / 0.5 < float(eta[1])


def test_memory_that_has_settled_is_no_leak() -> None:
    settled = lambda second: (20 + min(second, 20.0)) * GIB  # noqa: E731
    assert judged({"memory_used": settled, "processes": ({"memory_used": settled},)}, seconds=60).key == "healthy"


def test_loading_weights_is_no_leak() -> None:
    grown = lambda second: (2 + second) * GIB  # noqa: E731
    loading = QUIET | {
        "utilization": 10,
        "pcie_rx": 1.1 * GIB,
        "memory_used": grown,
        "processes": ({"memory_used": grown},),
    }
    assert "memory_leak" not in keys(judged(loading))


def test_a_process_that_ends_at_a_full_gpu_ran_out_of_memory() -> None:
    def held(second: float) -> float:
        return min(138.0, 60 + 4 * second) * GIB

    def used(second: float) -> float:
        return held(second) if second < 22 else 0.0

    def there(second: float) -> tuple[dict[str, Any], ...]:
        return ({"memory_used": held},) if second < 22 else ()

    verdict = judged({"memory_used": used, "processes": there})
    assert (verdict.key, verdict.confidence, verdict.processes[0].pid) == ("out_of_memory", "high", 4242)


def test_a_job_that_ends_normally_did_not_run_out_of_memory() -> None:
    def there(second: float) -> tuple[dict[str, Any], ...]:
        return ({},) if second < 22 else ()

    assert judged({"memory_used": lambda second: 20 * GIB if second < 22 else 0, "processes": there}).key == "healthy"


LIMITS: dict[str, dict[str, Any]] = {
    "thermal_throttled": {"throttle_reasons": ("sw_thermal_slowdown",), "temperature": 88, "clock_sm": 1300},
    "thermal_throttled forced": {"throttle_reasons": ("hw_slowdown", "hw_thermal_slowdown"), "temperature": 92},
    "hw_slowdown": {"throttle_reasons": ("hw_slowdown", "hw_power_brake_slowdown"), "clock_sm": 900},
    "power_throttled": {"throttle_reasons": ("sw_power_cap",), "power_limit": 400.0, "power_draw": 398, "clock_sm": 1200},
    "clocks_locked": {"clock_sm": 1200, "power_draw": 380, "throttle_reasons": ("applications_clocks_setting",)},
    "pcie_degraded": {"pcie_width": 8, "pcie_rx": 1e9},
    "pcie_degraded slow": {"pcie_gen": 3, "pcie_rx": 1e9},
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_what_holds_the_gpu_down(name: str) -> None:
    assert keys(judged(LIMITS[name])) == [name.split()[0]]


def test_the_power_cap_at_the_default_limit_is_healthy() -> None:
    assert judged({"throttle_reasons": ("sw_power_cap",), "clock_sm": 1500}).key == "healthy"


def test_a_link_that_saves_power_when_idle_is_fine() -> None:
    assert judged(QUIET | {"processes": (), "memory_used": 0, "pcie_gen": 1, "pcie_rx": 0}).key == "idle"


def test_a_lost_gpu_is_told_even_when_it_came_back() -> None:
    verdict = judged(
        {
            "state": lambda second: "lost" if 5 <= second < 9 else "ok",
            "xid_last": lambda second: 79 if second >= 5 else None,
        }
    )
    assert verdict.key == "lost"
    assert verdict.values["end_time"] is not None


def test_an_xid_of_the_gpu_comes_first_and_one_of_a_program_beside_the_verdict() -> None:
    serious = judged({"xid_last": lambda second: 79 if second > 10 else None})
    assert (serious.key, serious.values["xid"]) == ("xid", 79)
    mild = judged({"xid_last": lambda second: 31 if second > 10 else None})
    assert keys(mild) == ["healthy", "xid"]
    assert keys(judged({"xid_last": 31})) == ["healthy"]  # a program ended long ago
    assert judged({"xid_last": 79}).key == "xid"


def test_memory_errors_are_a_fault() -> None:
    assert judged({"ecc_uncorrected": lambda second: 2 if second < 10 else 3}).key == "memory_errors"
    assert judged({"ecc_uncorrected": 2}).key == "healthy"


def test_a_driver_that_does_not_answer() -> None:
    assert judged({"state": lambda second: "timeout" if second > 20 else "ok"}).key == "driver_unresponsive"


def test_nearly_full_memory_matters_more_than_health_and_less_than_a_limit() -> None:
    full: dict[str, Any] = {"memory_used": 137 * GIB, "processes": ({"memory_used": 136 * GIB},)}
    assert keys(judged(full)) == ["memory_pressure"]
    assert keys(judged(full | {"tensor_active": 0, "dram_active": 88})) == ["memory_bandwidth", "memory_pressure"]
    pool = {"memory_used": 137 * GIB, "processes": ({"memory_used": 136 * GIB, "command": "vllm serve x"},)}
    assert keys(judged(pool)) == ["healthy"]


def test_a_gpu_that_waits_while_nothing_runs_waits_for_something_outside() -> None:
    odd = {
        "utilization": 55,
        "graphics_active": 55,
        "sm_active": 30,
        "tensor_active": 8,
        "dram_active": 12,
        "power_draw": 250,
    }
    verdict = judged(odd | {"processes": ({"cpu_percent": 30.0, "tree_cpu_percent": 30.0},)})
    assert (verdict.key, verdict.confidence) == ("waiting", "medium")  # the state of its thread would make it sure


def test_two_samples_are_too_few() -> None:
    assert judged({}, seconds=1.0).key in ("unknown", "healthy")


def test_every_verdict_has_a_rule_with_documentation() -> None:
    names = {rule.key for rule in RULES}
    assert names == {
        "healthy", "fp32_no_tensor", "memory_bandwidth", "memory_latency", "launch_bound", "small_batch", "input_bound_cpu",
        "host_bound", "input_bound_io", "transfer_bound", "stalls", "communication_bound", "straggler", "hang",
        "idle_allocation", "underused", "idle", "contention", "power_throttled", "thermal_throttled", "hw_slowdown", "clocks_locked",
        "pcie_degraded", "memory_pressure", "memory_leak", "out_of_memory", "orphaned_memory", "lost", "xid", "memory_errors",
        "driver_unresponsive", "unknown", "busy", "waiting", "starting", "loading", "not_used",
        "serving_stuck", "serving_cache_full", "serving_preemptions", "serving_queue", "serving_decode", "serving_prefill",
        "serving_idle",
    }  # fmt: skip
    assert all(rule.signature and rule.blind and rule.sources for rule in RULES)
