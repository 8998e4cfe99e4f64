"""Traces of what the driver samples by itself: each value once, in order, and none across a hole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import TIMED_POWER
from gpulse.sources.base import Facts
from gpulse.sources.nvidia.gpm import DriverTrace, since
from gpulse.sources.nvidia.nvml import NOT_FOUND, NOT_SUPPORTED, SUCCESS, TIMEOUT
from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

STEP = 20_000
START = 1_790_000_000_000_000


class Driver:
    """A driver with a buffer of samples; a value in mW is the number of its sample. `pauses` are steps that it did not sample."""

    def __init__(self, step: int = STEP, kept: int = 119, pauses: range = range(0)) -> None:
        self.now = START
        self.code = SUCCESS
        self.step = step
        self.kept = kept
        self.pauses = pauses
        self.calls = 0

    def function(self, name: str) -> Any:
        assert name == "nvmlDeviceGetSamples"
        return self.answer

    def answer(self, handle: object, kind: int, seen: Any, form: Any, count: Any, buffer: Any) -> int:
        self.calls += 1
        if self.code:
            return self.code
        newest = (self.now - START) // self.step
        numbers = [n for n in range(newest - self.kept + 1, newest + 1) if n not in self.pauses]
        numbers = [n for n in numbers if START + n * self.step > seen.value]
        for place, number in enumerate(numbers):
            buffer[place].timeStamp = START + number * self.step
            buffer[place].sampleValue.ullVal = 1 << 32  # the upper half is not always clean
            buffer[place].sampleValue.uiVal = (number + 1000) * 1000
        count._obj.value = len(numbers)
        return SUCCESS if numbers else NOT_FOUND


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    monkeypatch.setattr("gpulse.sources.nvidia.gpm.time.time", lambda: driver.now / 1e6)
    return driver


def trace_of(driver: Driver) -> DriverTrace:
    return DriverTrace(driver, None, TIMED_POWER)  # type: ignore[arg-type]


def read(trace: DriverTrace) -> Any:
    facts = Facts()
    trace.read(facts, ["power_trace"])
    return facts.values.get("power_trace", facts.gaps.get("power_trace"))


@given(rests=st.lists(st.integers(1, 100), min_size=1, max_size=20))
def test_reads_within_the_buffer_lose_and_repeat_nothing(rests: list[int]) -> None:
    driver = Driver()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpulse.sources.nvidia.gpm.time.time", lambda: driver.now / 1e6)
        trace = trace_of(driver)
        seen = list(read(trace))
        assert seen == list(range(1000 - 118, 1001))
        for steps in rests:
            driver.now += steps * STEP
            fresh = read(trace)
            assert len(fresh) == steps
            seen += fresh
    assert seen == list(range(1000 - 118, 1001 + sum(rests)))


@given(rest=st.integers(119, 10_000))
def test_a_read_after_a_long_rest_has_what_the_buffer_kept(rest: int) -> None:
    driver = Driver()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpulse.sources.nvidia.gpm.time.time", lambda: driver.now / 1e6)
        trace = trace_of(driver)
        read(trace)
        driver.now += rest * STEP
        assert read(trace) == tuple(range(1000 + rest - 118, 1001 + rest))


@given(
    stamps=st.lists(st.integers(1, 400).map(lambda n: n * STEP // 2), max_size=60),
    seen=st.integers(0, 200).map(lambda n: n * STEP),
)
def test_samples_in_any_order_become_an_ordered_run_without_holes(stamps: list[int], seen: int) -> None:
    found = since([(stamp, stamp) for stamp in stamps], seen, STEP)
    kept = [stamp for stamp, _ in found]
    assert kept == sorted(set(kept))
    assert all(later - earlier <= 4 * STEP for earlier, later in pairwise(kept))
    fresh = sorted({stamp for stamp in stamps if stamp > seen})
    assert kept == fresh[len(fresh) - len(kept) :]
    if len(kept) < len(fresh):
        assert kept[0] - fresh[len(fresh) - len(kept) - 1] > 4 * STEP


def test_the_times_of_the_samples_are_told_where_they_are_asked_for(driver: Driver) -> None:
    trace, facts = trace_of(driver), Facts()
    trace.read(facts, TIMED_POWER)
    times: Any = facts.values["power_trace_times"]
    assert (len(times), times[-1]) == (119, START / 1e6)
    assert times[-1] - times[0] == pytest.approx(118 * STEP / 1e6)
    trace.read(facts, TIMED_POWER)
    assert facts.gaps == {"power_trace": "pending", "power_trace_times": "pending"}


def test_a_trace_starts_after_a_hole(driver: Driver) -> None:
    trace = trace_of(driver)
    read(trace)
    driver.pauses = range(10, 30)
    driver.now += 50 * STEP
    assert read(trace) == tuple(range(1030, 1051))


def test_a_read_before_the_next_sample_is_pending_and_costs_no_value(driver: Driver) -> None:
    trace = trace_of(driver)
    read(trace)
    driver.now += STEP // 2
    assert read(trace) == "pending"
    driver.now += STEP
    assert read(trace) == (1001,)


def test_a_buffer_that_is_not_filled_any_more_has_no_trace(driver: Driver) -> None:
    trace = trace_of(driver)
    driver.pauses = range(1, 10_000)
    driver.now += 50 * STEP
    assert read(trace) == "pending"


def test_a_clock_that_is_set_back_begins_a_new_trace(driver: Driver) -> None:
    trace = trace_of(driver)
    driver.now += 1000 * STEP
    read(trace)
    driver.now -= 500 * STEP
    assert len(read(trace)) == 119


def test_a_driver_that_samples_at_another_pace_has_no_trace(driver: Driver) -> None:
    driver.step = 5 * STEP // 6
    assert read(trace_of(driver)) == "unsupported"


def test_a_value_beyond_its_range_is_dropped(driver: Driver) -> None:
    driver.now += 200_000 * STEP
    assert read(trace_of(driver)) == "failed"


@pytest.mark.parametrize(
    ("code", "gap"), [(NOT_SUPPORTED, "unsupported"), (NOT_FOUND, "unsupported"), (TIMEOUT, "timeout")]
)
def test_an_error_is_a_gap_and_the_next_read_may_succeed(driver: Driver, code: int, gap: str) -> None:
    trace = trace_of(driver)
    driver.code = code
    assert read(trace) == gap
    driver.code = SUCCESS
    assert len(read(trace)) == 119


ASK = """
import json
from gpulse.model.select import Wanted
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import make_source
sampler = Sampler(make_source("nvidia"), Wanted(["power_trace", "utilization_trace"])).open()
first = sampler.read().gpus[0]
second = sampler.read().gpus[0]
print(json.dumps([first.power_trace, first.utilization_trace, dict(first.gaps), second.power_trace, dict(second.gaps)]))
sampler.close()
"""


def test_a_sampler_reads_both_traces_and_does_not_repeat_them(lab: Lab) -> None:
    power, utilization, gaps, again, later_gaps = lab.see(Scenario.load("h200-busy"), ASK)
    assert (len(power), set(power)) == (120, {690})
    assert (len(utilization), set(utilization)) == (71, {100})
    assert (gaps, again, later_gaps) == ({}, None, {})


def test_a_partitioned_gpu_has_no_trace_of_utilization(lab: Lab) -> None:
    power, utilization, gaps, *_ = lab.see(Scenario.load("a100-mig"), ASK)
    assert len(power) == 120
    assert (utilization, gaps["utilization_trace"]) == (None, "unsupported")


@pytest.mark.parametrize(
    ("scenario", "gap"),
    [
        (Scenario.load("h200-busy").missing("nvmlDeviceGetSamples"), "unsupported"),
        (Scenario.load("h200-busy").fault(function="nvmlDeviceGetSamples", gpu="all", code="NO_PERMISSION"), "denied"),
        (Scenario.load("h200-busy").fault(function="nvmlDeviceGetSamples", gpu="all", code="UNKNOWN"), "failed"),
    ],
)
def test_a_fault_of_the_call_costs_only_the_traces(lab: Lab, scenario: Scenario, gap: str) -> None:
    code = ASK.replace('"utilization_trace"', '"utilization_trace", "utilization"', 1)
    power, utilization, gaps, *_ = lab.see(scenario, code)
    assert (power, utilization) == (None, None)
    assert gaps == {"power_trace": gap, "utilization_trace": gap}
