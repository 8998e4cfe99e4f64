"""Activity from GPM: means over the interval, never a zero that was not measured, only what was asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

ACTIVITY = (
    "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp64_active", "fp32_active", "fp16_active",
    "integer_active", "graphics_active",
)  # fmt: skip
SAMPLES = """
over = sampler(Wanted([*{keys}]), slow_every=0)
seen = []
for moment in {moments}:
    at(moment)
    seen.append(sample(over)["gpus"][0])
say(seen)
"""


def board(**values: Any) -> Scenario:
    return Scenario.load("h200-busy").gpu(0, **values)


def samples(lab: Lab, scenario: Scenario, *moments: float, keys: tuple[str, ...] = ("sm_active", "dram_active")) -> Any:
    return lab.see(scenario, SAMPLES.format(keys=keys, moments=moments))


def test_the_first_sample_has_nothing_to_compare_with(lab: Lab) -> None:
    (gpu,) = samples(lab, board(), 0.01, keys=ACTIVITY)
    assert [gpu[key] for key in ACTIVITY] == [None] * len(ACTIVITY)
    assert {gpu["gaps"][key] for key in ACTIVITY} == {"pending"}


def test_two_samples_within_one_latch_are_no_measurement(lab: Lab) -> None:
    first, second, third = samples(lab, board(), 0.02, 0.08, 0.12, keys=ACTIVITY)
    for gpu in (first, second):
        assert [gpu[key] for key in ACTIVITY] == [None] * len(ACTIVITY)
        assert {gpu["gaps"][key] for key in ACTIVITY} == {"pending"}
    assert third["sm_active"] == pytest.approx(82.32, abs=0.01)
    assert third["fp64_active"] == 0  # this zero is measured


def test_a_sample_before_the_next_latch_repeats_the_last_value_and_never_says_0(lab: Lab) -> None:
    _, value, again = samples(lab, board(), 0, 1.01, 1.02)
    assert value["sm_active"] == again["sm_active"] == pytest.approx(82.32, abs=0.01)


def test_a_value_is_the_mean_over_the_time_since_the_sample_before(lab: Lab) -> None:
    ramp = board(gpm__latch=0, gpm__sm="ramp(0, 10)", gpm__dram="ramp(0, 5)")
    seen = samples(lab, ramp, 1, 3, 4, 8)
    assert [gpu["sm_active"] for gpu in seen] == [None, 20.0, 35.0, 60.0]
    assert [gpu["dram_active"] for gpu in seen] == [None, 10.0, 17.5, 30.0]


def test_a_command_that_looks_once_waits_for_the_latch(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("h200-busy"), "--json").gpus
    assert gpu["sm_active"] == pytest.approx(82.32, abs=0.01)
    assert "pending" not in {gpu["gaps"].get(key) for key in ACTIVITY}


def test_only_what_is_wanted_is_requested_and_the_dear_one_only_now_and_then(lab: Lab) -> None:
    ids = lab.see(
        board(gpm__latch=0),
        """
import gpulse.sources.nvidia.nvml as nvml
requests = []
plain = nvml.Nvml.call
def call(self, name, *arguments):
    if name == "nvmlGpmMetricsGet":
        request = arguments[0]._obj
        requests.append([entry.metricId for entry in request.metrics[: request.numMetrics]])
    return plain(self, name, *arguments)
nvml.Nvml.call = call
from gpulse.sampling.clock import ManualClock
clock = ManualClock()
def ask(*keys):
    requests.clear()
    over = sampler(Wanted(keys), clock=clock, slow_every=2.5)
    for _ in range(4):
        clock.sleep(1.0)
        at(clock.monotonic())
        over.read()
    over.close()
    return [sorted(set(request)) for request in requests]
say([ask("sm_active"), ask("graphics_active", "sm_active"), ask("utilization")])
""",
    )
    alone, with_graphics, none = ids
    assert alone == [[2, 10]] * 4  # DRAM is always asked: it tells whether the others were measured
    assert [1 in request for request in with_graphics] == [True, False, False, True]
    assert none == []


def test_one_metric_the_driver_refuses_leaves_the_others(lab: Lab) -> None:
    scenario = board(gpm__latch=0, gpm__tensor="error NOT_SUPPORTED", gpm__fp32="unavailable")
    _, gpu = samples(lab, scenario, 0, 1, keys=ACTIVITY)
    assert (gpu["tensor_active"], gpu["gaps"]["tensor_active"]) == (None, "unsupported")
    assert (gpu["fp32_active"], gpu["gaps"]["fp32_active"]) == (None, "failed")
    assert gpu["sm_active"] == pytest.approx(82.32, abs=0.01)


def test_a_gpu_without_gpm_says_so_and_shows_no_zeros(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("boards/a100").driver(gpus=1), "--json").gpus
    assert [gpu[key] for key in ACTIVITY] == [None] * len(ACTIVITY)
    assert {gpu["gaps"][key] for key in ACTIVITY} == {"unsupported"}
    shown = lab.run(Scenario.load("boards/a100").driver(gpus=1)).out
    assert "tensor" not in shown
    assert "util" in shown


def test_every_sample_is_given_back(lab: Lab) -> None:
    calls = lab.run(Scenario.load("dgx-h100x8"), "--json").calls
    assert calls["nvmlGpmSampleAlloc"] == calls["nvmlGpmSampleFree"] == 16
