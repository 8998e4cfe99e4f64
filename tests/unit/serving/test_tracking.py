"""Counts become rates that survive a restart, histograms quantiles of the last minute, and energy tokens per joule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process, Server
from gpulse.model.serving import Histogram, ServerSample, Tariff
from gpulse.serving.tracking import ServingTracker

_INFINITE = float("inf")


def gpu(index: int, at: float, watts: float = 200.0, counter: bool = True, memory: float = 50e9) -> Gpu:
    values: dict[str, float | str] = {"uuid": f"GPU-{index}", "index": index, "power_draw": watts}
    if counter:
        values["energy"] = 1000.0 + watts * (at // 5 * 5)  # read every 5 s, and repeated in between
    return Gpu(values, processes=(Process({"pid": 100 + index, "memory_used": memory}),))


def answer(at: float, tokens: float, **others: float) -> ServerSample:
    counts = {"generation_tokens": tokens, "prompt_tokens": 3 * tokens, "requests": tokens / 100} | others
    return ServerSample("vllm", "m", "127.0.0.1:8000", at, counts=counts, gauges={"running": 2}, pids=(100, 101))


def run(tracker: ServingTracker, samples: list[ServerSample], **gpus: float | bool) -> list[Server]:
    found: list[Server] = []
    for sample in samples:
        now = sample.at + 0.1
        found += tracker.readings([sample], [gpu(0, now, **gpus), gpu(1, now, **gpus)], now)  # type: ignore[arg-type]
    return found


def test_rates_and_both_gpus_of_a_tensor_parallel_server() -> None:
    first, second = run(ServingTracker(), [answer(10, 1000), answer(12, 5000)])
    assert first.generation_rate is None
    assert first.gap("generation_rate") == "pending"
    assert second.gpus == ("GPU-0", "GPU-1")
    assert second.generation_rate == 2000
    assert second.gpu_generation_rate == 1000
    assert second.prompt_rate == 6000
    assert second.generation_tokens == 5000


@pytest.mark.parametrize("counter", [True, False])
def test_tokens_per_joule_within_one_percent(counter: bool) -> None:
    samples = [answer(1000 + at, 700.0 * at) for at in range(60)]
    last = run(ServingTracker(), samples, counter=counter)[-1]
    assert last.tokens_per_joule == pytest.approx(700 / (2 * 200), rel=0.01)


@pytest.mark.parametrize(
    ("tariff", "cost"),
    [
        (Tariff(gpu_price=1.8), 1.0),  # 2000 GPU seconds at 0.0005
        (Tariff(price=0.5), 0.5 * 2 * 200 * 1000 / 3.6e6),
        (Tariff(price=0.5, gpu_price=1.8), 1.0 + 0.5 * 2 * 200 * 1000 / 3.6e6),
        (Tariff(carbon=400.0), None),
    ],
)
def test_a_million_tokens_cost_gpu_time_and_energy(tariff: Tariff, cost: float | None) -> None:
    first, *_, last = run(ServingTracker(lambda: tariff), [answer(10 + at, 1000.0 * at) for at in range(40)])
    assert last.cost_per_million == (cost if cost is None else pytest.approx(cost, rel=0.01))
    assert first.gaps.get("cost_per_million") == (None if cost is None else "pending")


def test_no_cost_without_tokens_or_known_energy() -> None:
    idle = run(ServingTracker(lambda: Tariff(gpu_price=1.8)), [answer(10, 500), answer(11, 500)])[-1]
    assert (idle.cost_per_million, idle.gap("cost_per_million")) == (None, "pending")
    assert Tariff(price=0.5, gpu_price=1.8).per_million(1000, 2, None) is None


def test_a_restarted_server_has_no_negative_rate() -> None:
    tracker = ServingTracker()
    found = run(tracker, [answer(0, 9000), answer(1, 9500), answer(2, 100), answer(3, 350)])
    assert [one.generation_rate for one in found] == [None, 500, None, 250]


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=30))
def test_no_counts_make_a_negative_rate(tokens: list[float]) -> None:
    for one in run(ServingTracker(), [answer(at, count) for at, count in enumerate(tokens)]):
        for key in ("generation_rate", "prompt_rate", "request_rate", "tokens_per_joule", "idle_time"):
            value = one.get(key)
            assert value is None or (isinstance(value, (int, float)) and value >= 0)


def test_quantiles_are_those_of_the_last_minute() -> None:
    tracker, total, found = ServingTracker(), 0, []
    for at in range(0, 130, 5):
        total += 100
        slow = 0 if at < 60 else (at - 55) * 20  # from then on all are slow
        sample = answer(at, total)
        sample.latencies["first_token"] = Histogram((0.1, 1.0, _INFINITE), (total - slow, total, total))
        found = [*tracker.readings([sample], [gpu(0, at)], at)]
    assert found[0].first_token_p50 == pytest.approx(0.55)
    assert found[0].first_token_p95 == pytest.approx(0.955)
    assert found[0].gap("inter_token_p50") == "unsupported"


def test_idle_is_told_by_counts_not_by_silence() -> None:
    found = run(ServingTracker(), [answer(0, 5), answer(10, 50), answer(70, 50), answer(130, 50)])
    assert [one.idle_time for one in found] == pytest.approx([0.1, 0.1, 60.1, 120.1])


def test_memory_is_split_only_where_the_parts_fit() -> None:
    tracker = ServingTracker()
    sample = answer(0, 5)
    sample.gauges |= {"memory_weights": 60e9, "memory_cache": 30e9}
    [one] = tracker.readings([sample], [gpu(0, 0), gpu(1, 0)], 0.0)
    assert (one.memory_weights, one.memory_cache, one.memory_other) == (60e9, 30e9, 10e9)
    [one] = tracker.readings([sample], [gpu(0, 0, memory=1e9), gpu(1, 0, memory=1e9)], 1.0)
    assert one.memory_other is None


def test_a_silent_server_has_reasons_and_no_stale_values() -> None:
    tracker = ServingTracker()
    run(tracker, [answer(0, 5), answer(1, 50)])
    silent = ServerSample("vllm", "m", "127.0.0.1:8000", 2, pids=(100,), gap="timeout")
    [one] = tracker.readings([silent], [gpu(0, 2)], 2.0)
    assert one.running is None
    assert one.gap("generation_rate") == "timeout"
    assert one.model == "m"


def test_lists_that_were_not_read_do_not_part_a_server_from_its_gpus() -> None:
    tracker = ServingTracker()
    run(tracker, [answer(0, 5)])
    [one] = tracker.readings([answer(1, 10)], [Gpu({"uuid": "GPU-0"}, {"processes": "skipped"})], 1.0)
    assert one.gpus == ("GPU-0", "GPU-1")


def test_a_value_out_of_range_is_dropped() -> None:
    sample = answer(0, 5)
    sample.gauges["kv_cache"] = 4200.0
    [one] = ServingTracker().readings([sample], [gpu(0, 0)], 0.0)
    assert one.kv_cache is None
    assert one.gap("kv_cache") == "failed"


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_its_bucket(grown: list[int], share: float) -> None:
    counts = [float(sum(grown[: at + 1])) for at in range(len(grown))]
    bounds = [*map(float, range(1, len(grown))), _INFINITE]
    value = Histogram(bounds, counts).quantile(share)
    if counts[-1] == 0:
        assert value is None
    elif value is not None:
        below = max((count for bound, count in zip(bounds, counts, strict=True) if bound < value), default=0.0)
        assert below <= share * counts[-1] + 1e-6
