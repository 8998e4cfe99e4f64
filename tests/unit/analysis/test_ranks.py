"""The ranks of a job: which one the others wait for, and why."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.run_comparison import RankSummary, straggler, with_devices
from gpulse.analysis.summary import GpuSummary, Stats, Summary
from gpulse.present.program import rank_lines, straggler_text


def rank(number: int, step: float = 1.0, waited: float = 0.0, **more: Any) -> RankSummary:
    told = {"steps": 100, "seconds": 100 * step, "step_p50": step, "step_p95": step, "step_max": 2 * step}
    return RankSummary(number, **{**told, "waited": 100 * waited, **more})


def gpu(at: int, throttled: float = 0.0, **means: float) -> GpuSummary:
    stats = {key: Stats(mean, mean, mean, mean, mean) for key, mean in means.items()}
    return GpuSummary(
        index=at,
        uuid=f"GPU-{at}",
        name="H100",
        memory_total=80e9,
        stats=stats,
        energy=100.0 + at,
        idle_share=0.0,
        throttled_seconds=throttled,
        throttled={},
        power_capped=0.0,
    )


def machine(*gpus: GpuSummary) -> Summary:
    return Summary("", 100.0, samples=1, steps=100, items=0, waited=0, gpus=gpus, host={}, program={})


def placed(*gpus: GpuSummary, **waited: float) -> list[RankSummary]:
    ranks = [rank(at, pid=1000 + at, waited=waited.get(f"of{at}", 0.0)) for at in range(len(gpus))]
    with_devices(ranks, machine(*gpus), {1000 + at: f"GPU-{at}" for at in range(len(gpus))})
    return ranks


def test_ranks_that_are_alike_have_no_straggler() -> None:
    assert straggler([rank(0, 1.0), rank(1, 1.02), rank(2, 1.01)]) is None
    assert straggler([rank(0)]) is None
    assert straggler([]) is None
    assert straggler([rank(0), rank(1, steps=0, step_p50=None)]) is None


def test_a_rank_that_steps_on_its_own_is_compared_with_the_others() -> None:
    found = straggler([rank(0, 1.0), rank(1, 1.0), rank(2, 1.5)])
    assert found is not None
    assert (found.rank.rank, found.together, found.reason) == (2, False, "")
    assert straggler_text(found) == "Rank 2 is 50 % slower: it needs 500 ms more for each step."


def test_in_step_the_one_that_waits_for_data_holds_up_the_others() -> None:
    found = straggler([rank(0, 1.0, 0.1), rank(1, 1.0, 0.1), rank(2, 1.01, 0.1), rank(3, 1.0, 0.9)])
    assert found is not None
    assert (found.rank.rank, found.together, found.reason) == (3, True, "data")
    assert straggler_text(found) == (
        "Rank 3 is 381 % slower: the others wait 800 ms per step for it (79 % of the time). "
        "It waits 900 ms per step for data, the others 100 ms."
    )


@pytest.mark.parametrize(
    ("slow", "reason", "words"),
    [
        (gpu(2, 50.0, sm_active=90.0, clock_sm=1200.0), "throttled", "Its GPU is throttled."),
        (
            gpu(2, sm_active=90.0, clock_sm=1200.0),
            "clock",
            "Its GPU runs at 1200 MHz, those of the others at 1900 MHz.",
        ),
        (gpu(2, sm_active=90.0, clock_sm=1900.0), "compute", "Its GPU computes 90 % of the time"),
    ],
)
def test_in_step_the_gpu_that_computes_longest_holds_up_the_others(slow: GpuSummary, reason: str, words: str) -> None:
    fast = (gpu(at, sm_active=60.0, clock_sm=1900.0) for at in range(2))
    found = straggler(placed(*fast, slow))
    assert found is not None
    assert (found.rank.rank, found.together, found.reason, round(found.excess, 3)) == (2, True, reason, 0.3)
    assert words in straggler_text(found)


def test_a_gpu_that_two_ranks_share_tells_neither() -> None:
    ranks = [rank(0, pid=1), rank(1, pid=2)]
    with_devices(ranks, machine(gpu(0, sm_active=50.0)), {1: "GPU-0", 2: "GPU-0"})
    assert [(one.energy, one.busy) for one in ranks] == [(None, None)] * 2


def test_the_table_has_a_row_for_each_rank_and_no_empty_column() -> None:
    ranks = placed(gpu(0, sm_active=50.0, memory_used=2**30), gpu(1, sm_active=50.0, memory_used=2**31))
    lines = rank_lines(ranks, None, 4)
    assert lines[0].split() == ["rank", "steps/s", "step", "p50", "p95", "max", "SM", "peak", "energy"]
    assert lines[2].split()[0] == "1"
    assert lines[2].endswith("2.0 GiB   101 J")
    assert lines[3].strip().startswith("2 of 4 ranks left no figures")


def test_ranks_of_several_machines_are_named_by_both() -> None:
    ranks = [RankSummary(0, "a", steps=1, seconds=1), RankSummary(1, "b\x1b", steps=1, seconds=1)]
    assert [line.split("  ")[1] for line in rank_lines(ranks, None, 2)[1:]] == ["0 (a)", "1 (b\\x1b)"]


def test_figures_are_read_back_and_wrong_ones_left_out() -> None:
    told = rank(3, pid=7, gpu="GPU-1", memory=5.0).to_plain()
    assert RankSummary.from_plain(told).to_plain() == told
    assert (
        RankSummary.from_plain({"rank": 1, "steps": "x", "gpu": 7, "host": None}).to_plain()
        == RankSummary(1).to_plain()
    )
    with pytest.raises((ValueError, TypeError)):
        RankSummary.from_plain({"rank": "x"})
