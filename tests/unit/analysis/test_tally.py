"""What a window of time adds up to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpulse.analysis.summary import GpuSummary
from gpulse.analysis.tally import Tally
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot

if TYPE_CHECKING:
    from gpulse.model.metric import Value


def sample(*gpus: dict[str, Value], **host: Value) -> Snapshot:
    named = (Gpu({"uuid": f"GPU-{at}", "index": at, "name": "H100", **gpu}) for at, gpu in enumerate(gpus))
    return Snapshot(1.0, tuple(named), Host(host))


def only(tally: Tally) -> GpuSummary:
    (gpu,) = tally.summary("", 10.0).gpus
    return gpu


def test_idle_is_the_share_of_the_time_that_was_watched() -> None:
    tally = Tally()
    tally.add(sample({"utilization": 0}), None, 1.0)
    tally.add(sample({"utilization": 5.0}), None, 2.0)  # just busy
    tally.add(sample({"utilization": 4.9}), None, 1.0)
    tally.add(sample({}), None, 100.0)  # not told: neither idle nor busy
    assert only(tally).idle_share == 50.0


def test_without_utilisation_nobody_says_idle() -> None:
    tally = Tally()
    tally.add(sample({"power_draw": 90.0}), None, 1.0)
    assert only(tally).idle_share is None


def test_two_reasons_at_once_hold_a_gpu_down_once() -> None:
    tally = Tally()
    tally.add(sample({"throttle_reasons": ("hw_thermal_slowdown", "hw_slowdown")}), None, 2.0)
    tally.add(sample({"throttle_reasons": ("hw_slowdown", "gpu_idle")}), None, 1.0)
    tally.add(sample({"throttle_reasons": ()}), None, 5.0)
    gpu = only(tally)
    assert gpu.throttled_seconds == 3.0
    assert gpu.throttled == {"hw_thermal_slowdown": 2.0, "hw_slowdown": 3.0}


def test_the_power_cap_and_idleness_are_no_throttling() -> None:
    tally = Tally()
    tally.add(sample({"throttle_reasons": ("sw_power_cap",)}), None, 4.0)
    tally.add(sample({"throttle_reasons": ("gpu_idle", "applications_clocks_setting")}), None, 2.0)
    gpu = only(tally)
    assert (gpu.throttled_seconds, gpu.throttled, gpu.power_capped) == (0.0, {}, 4.0)


def test_under_heat_and_cap_at_once_both_are_counted() -> None:
    tally = Tally()
    tally.add(sample({"throttle_reasons": ("sw_power_cap", "sw_thermal_slowdown")}), None, 4.0)
    gpu = only(tally)
    assert (gpu.throttled_seconds, gpu.throttled, gpu.power_capped) == (4.0, {"sw_thermal_slowdown": 4.0}, 4.0)


def test_energy_is_put_in_by_uuid_and_summed_over_gpus() -> None:
    tally = Tally()
    assert tally.summary("", 1.0).energy is None
    tally.add(sample({"energy": 5.0}, {"energy": 9.0}), None, 1.0)
    assert tally.summary("", 1.0).energy is None  # a counter's height is no consumption
    tally.add_energy("GPU-0", 10.0)
    tally.add_energy("GPU-0", 5.0)
    tally.add_energy("GPU-1", 0.0)
    tally.add_energy("GPU-9", 1000.0)  # not of this window
    summary = tally.summary("", 1.0)
    assert [gpu.energy for gpu in summary.gpus] == [15.0, 0.0]
    assert summary.energy == 15.0


def test_peak_memory_is_the_highest_seen_and_zero_is_a_value() -> None:
    tally = Tally()
    tally.add(sample({"memory_used": 0, "memory_total": 80}), None, 1.0)
    assert only(tally).peak_memory == 0
    tally.add(sample({"memory_used": 70, "memory_total": 80}), None, 1.0)
    tally.add(sample({"memory_used": 20, "memory_total": 80}), None, 1.0)
    assert (only(tally).peak_memory, only(tally).memory_total) == (70, 80)


def test_counters_and_constants_get_no_statistics() -> None:
    tally = Tally()
    tally.add(sample({"energy": 5.0, "name": "H100", "index": 0, "utilization": 3}), None, 1.0)
    assert set(only(tally).stats) == {"utilization"}


def test_a_gpu_that_is_lost_keeps_its_figures_and_says_so() -> None:
    tally = Tally()
    tally.add(sample({"utilization": 80}), None, 1.0)
    tally.add(Snapshot(2.0, (Gpu({"uuid": "GPU-0"}, {"utilization": "lost"}, state="lost"),), Host({})), None, 1.0)
    assert (only(tally).state, only(tally).stats["utilization"].mean) == ("lost", 80.0)


def test_machine_and_program_have_figures_of_their_own() -> None:
    tally = Tally()
    tally.add(sample(cpu_percent=20.0), Process({"pid": 1, "cpu_percent": 90.0, "children": 2}), 1.0)
    tally.add(sample(cpu_percent=40.0), None, 1.0)
    summary = tally.summary("", 2.0)
    assert summary.host["cpu_percent"].mean == pytest.approx(30.0)
    assert summary.program["cpu_percent"].mean == 90.0
    assert "pid" not in summary.program


def test_rates_need_something_counted() -> None:
    tally = Tally()
    assert (tally.summary("", 2.0).steps_per_second, tally.summary("", 2.0).items_per_second) == (None, None)
    tally.steps, tally.items = 10, 640.0
    assert (tally.summary("", 2.0).steps_per_second, tally.summary("", 2.0).items_per_second) == (5.0, 320.0)
    assert tally.summary("", 0.0).steps_per_second is None


def test_a_summary_is_plain_data() -> None:
    tally = Tally()
    tally.add(sample({"utilization": 50}, cpu_percent=1.0), Process({"cpu_percent": 2.0}), 1.0)
    plain = json.loads(json.dumps(tally.summary("train", 3.0).to_plain()))
    assert (plain["name"], plain["seconds"], plain["samples"]) == ("train", 3.0, 1)
    assert plain["gpus"][0]["stats"]["utilization"] == {"mean": 50, "p50": 50, "p95": 50, "max": 50, "min": 50}
    assert plain["energy"] is None
