"""Each story of the demo shows what it is about, to the eye and to whoever reads the numbers."""

from __future__ import annotations

from statistics import mean

import pytest

from tests.unit.sources.simulated.demo import Demo, number, numbers, percentile

_MINUTE = [second + 0.25 for second in range(60)]
_QUARTER = [second + 0.25 for second in range(900)]
_SEEDS = pytest.mark.parametrize("seed", [7, 8, 12345])


@_SEEDS
@pytest.mark.parametrize("gpu", range(2))
def test_training_is_healthy(seed: int, gpu: int) -> None:
    samples = Demo(seed).watch(gpu, _QUARTER)
    busy = [sample for sample in samples if number(sample, "nvlink_rx") > 40e9]
    assert len(busy) > 0.85 * len(samples)
    assert percentile(numbers(busy, "sm_active"), 0.05) >= 85
    assert max(numbers(busy, "sm_active")) <= 97
    assert 55 <= percentile(numbers(busy, "tensor_active"), 0.02) <= max(numbers(busy, "tensor_active")) <= 70
    assert 35 <= percentile(numbers(busy, "dram_active"), 0.02) <= max(numbers(busy, "dram_active")) <= 50
    assert percentile(numbers(busy, "power_draw"), 0.1) > 670
    assert max(numbers(samples, "power_draw")) < 705
    assert all(sample.values["throttle_reasons"] == ("sw_power_cap",) for sample in busy[1:-1:50])
    assert all(60 <= value <= 70 for value in numbers(busy, "temperature")[20:60])


@_SEEDS
def test_training_pauses_now_and_then_for_all_ranks_at_once(seed: int) -> None:
    ranks = [numbers(Demo(seed).watch(gpu, _QUARTER), "utilization") for gpu in range(2)]
    assert 5 <= sum(value < 30 for value in ranks[0]) <= 40
    assert all(max(moment) - min(moment) <= 3 for moment in zip(*ranks, strict=True))


def test_training_is_one_job_of_one_person() -> None:
    demo = Demo()
    pids = [pid for gpu in range(2) for pid in demo.read(gpu, 1.0).processes]
    assert len(set(pids)) == 2
    facts = [demo.process(pid, 1.0) for pid in pids]
    assert {str(fact.values["user"]) for fact in facts} == {"ada"}
    assert all(str(fact.values["job"]).startswith("slurm:") for fact in facts)
    assert all("torchrun" in str(fact.values["command"]) for fact in facts)


@_SEEDS
def test_starving_swings_while_its_loaders_are_busy(seed: int) -> None:
    demo = Demo(seed)
    for times in (_MINUTE, _QUARTER):
        samples = demo.watch(4, times)
        utilization = numbers(samples, "utilization")
        assert percentile(utilization, 0.95) >= 70
        assert percentile(utilization, 0.05) <= 10
        assert 20 <= mean(numbers(samples, "sm_active")) <= 30
    (pid,) = samples[0].processes
    facts = demo.process(pid, 0.0)
    assert number(facts, "tree_cpu_percent") > 2000
    assert number(facts, "children") == 24
    assert number(facts, "cpu_percent") < 100


@_SEEDS
def test_starving_gets_its_data_in_bursts(seed: int) -> None:
    samples = Demo(seed).watch(4, _MINUTE)
    full = [number(sample, "pcie_rx") for sample in samples if number(sample, "utilization") > 90]
    empty = [number(sample, "pcie_rx") for sample in samples if number(sample, "utilization") < 5]
    assert min(full) > 10 * max(empty)


@_SEEDS
def test_leak_grows_dies_and_comes_back_as_another_process(seed: int) -> None:
    samples = Demo(seed).watch(5, _MINUTE + [60.25 + second for second in range(40)])
    lives: list[int | None] = []
    for sample in samples:
        pid = next(iter(sample.processes), None)
        if not lives or lives[-1] != pid:
            lives.append(pid)
    first, gone, second = lives
    assert first is not None
    assert gone is None
    assert second not in (None, first)
    growing = numbers([sample for sample in samples if first in sample.processes], "memory_used")
    assert growing == sorted(growing)
    assert growing[-1] - growing[0] > 8 << 30
    assert growing[-1] > 0.985 * 84e9


def test_leak_leaves_an_idle_gpu_behind() -> None:
    sample = Demo().read(5, 60.0)
    assert sample.processes == {}
    assert sample.values["memory_used"] == 0
    assert sample.values["throttle_reasons"] == ("gpu_idle",)
    assert sample.values["clock_sm"] == 345
    assert number(sample, "power_draw") < 90


def test_leak_never_uses_a_pid_again() -> None:
    demo = Demo()
    pids = [pid for life in range(200) for pid in demo.read(5, life * 300.0).processes]
    assert len(set(pids)) == 200
    others = {pid for gpu in (0, 1, 2, 3, 4, 6, 7) for pid in demo.read(gpu, 0.0).processes}
    assert not others & set(pids)


@_SEEDS
def test_overheating_throttles(seed: int) -> None:
    samples = Demo(seed).watch(6, _MINUTE)
    assert all(88 <= value <= 91 for value in numbers(samples, "temperature"))
    assert all("sw_thermal_slowdown" in str(sample.values["throttle_reasons"]) for sample in samples)
    forced = [sample for sample in samples if "hw_thermal_slowdown" in str(sample.values["throttle_reasons"])]
    assert 0.3 < len(forced) / len(samples) < 0.8
    assert 1170 <= mean(numbers(forced, "clock_sm")) <= 1230
    assert max(numbers(samples, "clock_sm")) < 1600
    assert all(number(sample, "memory_used") / number(sample, "memory_total") > 0.88 for sample in samples)


@_SEEDS
def test_hoarding_holds_memory_and_does_nothing(seed: int) -> None:
    for sample in Demo(seed).watch(7, _MINUTE):
        assert number(sample, "memory_used") > 37 << 30
        assert sample.values["utilization"] == 0
        assert all(sample.values[key] == 0 for key in ("sm_active", "tensor_active", "dram_active"))
        assert 114 < number(sample, "power_draw") < 116
        assert sample.values["pstate"] == 0
        assert all(facts.values["sm_utilization"] == 0 for facts in sample.processes.values())


def test_temperature_follows_power_with_delay() -> None:
    samples = Demo().watch(5, [50.5 + second for second in range(17)])
    degrees = numbers(samples, "temperature")
    assert degrees == sorted(degrees, reverse=True)
    assert degrees[0] - degrees[3] < degrees[0] - degrees[-1]
