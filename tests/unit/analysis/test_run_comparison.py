"""Two runs: equal ones are rarely called different, and a real difference is found."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from gpulse.analysis.run_comparison import RunComparison
from gpulse.analysis.summary import StepTimes
from gpulse.present.runs import comparison_text
from gpulse.store.runs import KeptRun


def steady(rng: random.Random, at: int) -> float:
    return rng.gauss(0.1, 0.005)


def skewed(rng: random.Random, at: int) -> float:
    return 0.1 * rng.lognormvariate(0, 0.1)


def stalling(rng: random.Random, at: int) -> float:
    """A checkpoint of ten seconds every 200 steps."""
    return rng.gauss(0.1, 0.005) + (10.0 if at % 200 == 199 else 0.0)


def two_kinds(rng: random.Random, at: int) -> float:
    return rng.choice((0.08, 0.08, 0.14)) * rng.gauss(1.0, 0.02)


KINDS = (steady, skewed, stalling, two_kinds)


def run(
    seed: int, kind: Callable[[random.Random, int], float], scale: float = 1.0, steps: int = 2000, **more: Any
) -> KeptRun:
    blocks = list(_blocks(seed, kind, scale, steps))
    return KeptRun({"id": f"r-{seed}", "step_blocks": blocks, "throughput": {"steps": steps}, **more})


@cache
def _drawn(seed: int, kind: Callable[[random.Random, int], float], steps: int) -> list[float]:
    rng = random.Random(seed)
    return [max(1e-3, kind(rng, at)) for at in range(steps)]


@cache
def _blocks(seed: int, kind: Callable[[random.Random, int], float], scale: float, steps: int) -> list[float]:
    times = StepTimes()
    for seconds in _drawn(seed, kind, steps):
        times.add(scale * seconds)
    return times.blocks


@pytest.mark.parametrize("kind", KINDS)
def test_equal_runs_are_rarely_called_different(kind: Callable[[random.Random, int], float]) -> None:
    found = [RunComparison(run(seed, kind), run(1000 + seed, kind)).different for seed in range(60)]
    assert sum(found) <= 3


@pytest.mark.parametrize("scale", [1.07, 1 / 1.07])
@pytest.mark.parametrize("kind", KINDS)
def test_seven_percent_are_found_and_within_the_margin(
    kind: Callable[[random.Random, int], float], scale: float
) -> None:
    compared = [RunComparison(run(seed, kind), run(1000 + seed, kind, scale)) for seed in range(30)]
    assert sum(one.different for one in compared) >= 28
    within = [abs((one.change or 0.0) - (scale - 1)) <= (one.margin or 0.0) for one in compared]
    assert sum(within) >= 24


def test_slow_drift_makes_a_margin_wider() -> None:
    def drifting(rng: random.Random, at: int) -> float:
        return 0.1 + 0.01 * ((at // 250) % 2) + rng.gauss(0, 0.001)

    calm, drifts = RunComparison(run(1, steady), run(2, steady)), RunComparison(run(1, drifting), run(2, drifting))
    assert (drifts.margin or 0.0) > 3 * (calm.margin or 1.0)


def test_runs_that_differ_by_themselves_need_more() -> None:
    before, after = run(1, steady, host="a"), run(2, steady, 1.04, host="a")
    assert RunComparison(before, after).different
    past = [run(10 + at, steady, scale, host="a") for at, scale in enumerate((0.95, 1.0, 1.06, 0.97, 1.03))]
    assert not RunComparison(before, after, past).different


def test_a_larger_batch_is_compared_by_item() -> None:
    small = run(1, steady, throughput={"steps": 2000, "items": 2000 * 32})
    large = run(2, steady, 1.5, throughput={"steps": 2000, "items": 2000 * 64})
    compared = RunComparison(small, large)
    assert compared.unit == "item"
    assert compared.change == pytest.approx(-0.25, abs=0.01)
    assert comparison_text(compared, 0.0, "A").startswith("33 % faster per item than A, ± ")


def test_what_grew_with_the_time_is_the_cause() -> None:
    before = run(1, steady, throughput={"steps": 2000, "data_wait": 4.0})
    after = run(2, steady, 1.07, throughput={"steps": 2000, "data_wait": 10.6})
    compared = RunComparison(before, after)
    assert compared.cause is not None
    assert compared.cause.part == "data_wait"
    assert comparison_text(compared, 0.0, "yesterday") == (
        "7 % slower than yesterday, ± 0.4 %: waiting for data grew from 4 to 11 % of the time"
    )


def test_a_part_of_the_budget_may_be_the_cause() -> None:
    before = run(1, steady, budget={"seconds": 200, "shares": {"tensor": 0.9, "throttled": 0.0, "idle": 0.1}})
    after = run(2, steady, 1.2, budget={"seconds": 240, "shares": {"tensor": 0.75, "throttled": 0.167, "idle": 0.083}})
    cause = RunComparison(before, after).cause
    assert cause is not None
    assert (cause.part, round(cause.before), round(cause.after)) == ("throttled", 0, 17)


def test_nothing_is_blamed_that_does_not_explain_it() -> None:
    before = run(1, steady, throughput={"steps": 2000, "data_wait": 4.0})
    after = run(2, steady, 1.2, throughput={"steps": 2000, "data_wait": 5.0})
    assert RunComparison(before, after).cause is None


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (KeptRun({"id": "x-1"}), "run 1 counted no steps"),
        (run(7, steady, steps=5), "too few steps of run 7 were timed"),
    ],
)
def test_without_enough_steps_nothing_is_claimed(other: KeptRun, reason: str) -> None:
    compared = RunComparison(other, run(2, steady))
    assert (compared.change, compared.different, compared.reason) == (None, False, reason)
    assert comparison_text(compared, 0.0, "A") == f"speed cannot be compared with A: {reason}"
