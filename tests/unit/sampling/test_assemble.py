"""What a device answered is believed only where the catalog says it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from gpulse.model.metric import Number
from gpulse.sampling.assemble import Rates, check, derive_memory, settle_rates
from gpulse.sources.base import Counter, Facts
from tests.unit.scripted import process, sample

if TYPE_CHECKING:
    from gpulse.model.metric import Value

_GPU_NUMBERS = sorted(key for key, metric in GPU_METRICS.items() if isinstance(metric, Number))


def _checked(key: str, value: Value) -> tuple[Value | None, str | None, dict[str, int]]:
    facts, dropped = process(**{key: value}), dict[str, int]()
    check(facts, GPU_METRICS, dropped)
    return facts.values.get(key), facts.gaps.get(key), dropped


@pytest.mark.parametrize("value", [0, 0.0, 1, 99.9, 100])
def test_a_believable_value_is_kept_as_it_is_and_zero_is_one(value: float) -> None:
    assert _checked("utilization", value) == (value, None, {})


@pytest.mark.parametrize("value", [808334905, 2619, 101.1, -1, -0.1, 2**64 - 1, float("nan"), float("inf")])
def test_a_share_that_is_none_is_dropped_and_counted(value: float) -> None:
    assert _checked("utilization", value) == (None, "failed", {"utilization": 1})


@pytest.mark.parametrize("value", [100.4, 101])
def test_a_share_a_hair_over_the_whole_is_the_whole(value: float) -> None:
    assert _checked("sm_active", value) == (100.0, None, {})


def test_a_fan_may_pass_a_hundred() -> None:
    assert _checked("fan_speed", 104) == (104, None, {})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("key", ["cpu_percent", "running_time", "children"])
def test_what_is_no_number_is_dropped_even_without_a_bound(key: str, value: float) -> None:
    facts, dropped = process(**{key: value}), dict[str, int]()
    check(facts, PROCESS_METRICS, dropped)
    assert key not in facts.values
    assert dropped == {key: 1}


def test_drops_of_one_key_add_up() -> None:
    dropped: dict[str, int] = {}
    for _ in range(3):
        check(process(temperature=2**32 - 1), GPU_METRICS, dropped)
    assert dropped == {"temperature": 3}


def test_text_and_lists_pass() -> None:
    facts = process(name="808334905", load=(900.0, 1.0, 1.0), cpu_percent=-3)
    check(facts, HOST_METRICS, {})
    assert facts.values == {"name": "808334905", "load": (900.0, 1.0, 1.0)}


@given(key=st.sampled_from(_GPU_NUMBERS), value=st.floats() | st.integers(-(2**70), 2**70))
def test_whatever_passes_is_inside_its_range(key: str, value: float) -> None:
    shown, gap, dropped = _checked(key, value)
    if shown is None:
        assert (gap, dropped) == ("failed", {key: 1})
    else:
        assert isinstance(shown, (int, float))
        assert GPU_METRICS[key].low <= shown <= GPU_METRICS[key].high


def _settled(rates: Rates, counters: dict[str, Counter]) -> Facts:
    facts = Facts()
    facts.counters.update(counters)
    settle_rates("host", facts, rates)
    return facts


def test_counters_become_values_from_the_second_sample_on() -> None:
    rates = Rates()
    first = _settled(rates, {"disk_read": Counter(0, 0.0)})
    second = _settled(rates, {"disk_read": Counter(1024, 2.0)})
    assert (first.values, first.gaps) == ({}, {"disk_read": "pending"})
    assert (second.values, second.gaps) == ({"disk_read": 512.0}, {})


def test_counters_of_cores_become_one_list_in_order() -> None:
    rates = Rates()
    for total in (0, 200):
        facts = _settled(
            rates, {f"cpu_per_core.{core}": Counter(core * total / 20, total, 100.0) for core in range(11)}
        )
    assert facts.values == {"cpu_per_core": tuple(core * 5.0 for core in range(11))}


def test_a_list_with_one_core_missing_is_a_gap() -> None:
    rates = Rates()
    _settled(rates, {"cpu_per_core.0": Counter(0, 0)})
    facts = _settled(rates, {"cpu_per_core.0": Counter(1, 1), "cpu_per_core.1": Counter(1, 1)})
    assert (facts.values, facts.gaps) == ({}, {"cpu_per_core": "pending"})


def test_memory_share_is_of_what_programs_can_have() -> None:
    answer = sample({"memory_used": 30, "memory_total": 100, "memory_reserved": 40})
    derive_memory(answer)
    assert answer.values["memory_percent"] == 50.0


@pytest.mark.parametrize("total", [0, 40])
def test_without_memory_to_have_there_is_no_share(total: int) -> None:
    answer = sample({"memory_used": 0, "memory_total": total, "memory_reserved": 40})
    derive_memory(answer)
    assert "memory_percent" not in answer.values


def test_memory_that_no_process_holds_is_unattributed() -> None:
    answer = sample({"memory_used": 100})
    answer.processes = {1: process(memory_used=30), 2: process(memory_used=0)}
    derive_memory(answer)
    assert answer.values["memory_unattributed"] == 70


def test_processes_that_hold_more_than_is_used_leave_nothing_unattributed() -> None:
    answer = sample({"memory_used": 100})
    answer.processes = {1: process(memory_used=130)}
    derive_memory(answer)
    assert answer.values["memory_unattributed"] == 0


def test_nobody_says_what_is_unattributed_when_one_process_does_not_say_what_it_holds() -> None:
    answer = sample({"memory_used": 100})
    answer.processes = {1: process(memory_used=30), 2: process()}
    derive_memory(answer)
    assert "memory_unattributed" not in answer.values


def test_a_process_list_that_could_not_be_read_leaves_nothing_to_attribute() -> None:
    answer = sample({"memory_used": 100})
    answer.gaps["processes"] = "denied"
    derive_memory(answer)
    assert "memory_unattributed" not in answer.values


_GIB = 1 << 30


@pytest.mark.parametrize(
    ("part", "whole"), [("memory_used", "memory_total"), ("memory_free", "memory_total"), ("bar1_used", "bar1_total")]
)
def test_more_memory_in_use_than_there_is_is_dropped(part: str, whole: str) -> None:
    facts, dropped = process(**{part: 81 * _GIB, whole: 80 * _GIB}), dict[str, int]()
    check(facts, GPU_METRICS, dropped)
    assert (facts.values, facts.gaps, dropped) == ({whole: 80 * _GIB}, {part: "failed"}, {part: 1})
    facts = process(**{part: 80 * _GIB, whole: 80 * _GIB})
    check(facts, GPU_METRICS, {})
    assert not facts.gaps


def test_a_gpu_that_uses_the_memory_of_the_host_may_exceed_what_is_set_aside_for_it() -> None:
    facts = process(memory_used=9 * _GIB, memory_total=8 * _GIB, memory_unified=True)
    check(facts, GPU_METRICS, {})
    assert facts.values["memory_used"] == 9 * _GIB


def test_a_clock_may_exceed_its_nominal_maximum() -> None:
    facts = process(clock_sm=2000.0, clock_sm_max=1980.0)
    check(facts, GPU_METRICS, {})
    assert facts.values["clock_sm"] == 2000.0


@pytest.mark.parametrize("value", [(50.0, 1e300), (float("nan"),), (-1.0,), (50.0, "x"), (0.0,) * 20_000])
def test_a_list_with_an_implausible_entry_is_dropped_as_a_whole(value: Any) -> None:
    facts = process(cpu_per_core=value)
    check(facts, HOST_METRICS, {})
    assert (facts.values, facts.gaps) == ({}, {"cpu_per_core": "failed"})
