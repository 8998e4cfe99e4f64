"""The times of steps: percentiles of single steps, means of blocks that stay few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.summary import MOST_BLOCKS, StepTimes


def test_percentiles_are_those_of_single_steps() -> None:
    times = StepTimes()
    for at in range(100):
        times.add(1.0 if at == 50 else 0.1)
    stats = times.stats
    assert stats is not None
    assert (stats.p50, stats.p95, stats.max) == (0.1, 0.1, 1.0)
    assert stats.mean == pytest.approx(0.109)


def test_who_asks_every_second_gets_nearly_the_same_without_sorting_each_time() -> None:
    times = StepTimes()
    for _ in range(1000):
        times.add(0.1)
    first = times.recent
    times.add(9.0)
    second = times.recent
    assert first is not None
    assert second is not None
    assert (second.p50, second.max) == (0.1, 9.0)
    assert second.mean == pytest.approx((100.0 + 9.0) / 1001)
    for _ in range(2000):
        times.add(0.3)
    assert times.recent is not None
    assert times.recent.p50 == 0.3


def test_several_steps_at_once_share_their_time() -> None:
    times = StepTimes()
    times.add(2.0, 4)
    assert times.blocks == [0.5]
    stats = times.stats
    assert stats is not None
    assert stats.max == 0.5


def test_before_the_first_time_nothing_is_known() -> None:
    assert StepTimes().stats is None
    assert StepTimes().blocks == []


@given(st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=1500))
def test_blocks_are_few_and_keep_the_mean(seconds: list[float]) -> None:
    times = StepTimes()
    for each in seconds:
        times.add(each)
    blocks = times.blocks
    assert len(blocks) == min(len(blocks), MOST_BLOCKS)
    assert len(seconds) < 64 or len(blocks) >= 64 - 1
    size = max(1, len(seconds) // len(blocks)) if blocks else 1
    while size * len(blocks) > len(seconds):
        size -= 1
    whole = seconds[: size * len(blocks)]
    if len(whole) == len(blocks) * size and (size & (size - 1)) == 0:
        assert sum(blocks) / len(blocks) == pytest.approx(sum(whole) / len(whole))
