"""Columns come back within the step their unit states, gaps as gaps and zeros as zeros."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, SERVER_METRICS
from gpulse.model.metric import Number
from gpulse.store.history.columns import NAN, RATE, Column, coding_of, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpulse.model.metric import Metric

_STEPS = {2: 65536.0, 3: 1.0, 4: 0.1, 5: 0.01, 6: 0.001}
_NUMBERS = st.one_of(
    st.just(0.0),
    st.integers(0, 2**53).map(float),
    st.floats(0, 1e6),
    st.floats(-1e299, 1e299),
    st.just(NAN),
)


def close(got: float, put: float, coding: int) -> bool:
    """Whether a value came back as its coding promises."""
    if math.isnan(put) or put == 0:
        return math.isnan(got) if math.isnan(put) else got == 0
    if coding == RATE:
        return abs(got - put) <= abs(put) / 8192 + 1e-37
    return abs(got - put) <= _STEPS[coding] / 2 + abs(put) * 1e-15


@given(st.sampled_from([RATE, *_STEPS]), st.lists(_NUMBERS, min_size=1, max_size=50))
def test_what_is_packed_comes_back_within_a_step(coding: int, values: list[float]) -> None:
    got = unpack(pack({7: Column.of_ticks(coding, values)}), len(values))
    if all(value != value for value in values):
        assert got == {}
    else:
        assert all(close(one, other, coding) for one, other in zip(got[7].mean, values, strict=True))


def test_full_resolution_keeps_each_value_once() -> None:
    values = [float(second % 100) for second in range(600)]
    packed = zlib.decompress(pack({7: Column.of_ticks(5, values)}))
    thrice = zlib.decompress(pack({7: Column(5, values, [*values], [*values], gaps=False)}))
    assert len(packed) < 600 * 2 + 50 < len(thrice)


@given(st.sampled_from([RATE, *_STEPS]), st.lists(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS), min_size=1, max_size=30))
def test_least_mean_and_most_stay_in_order(coding: int, rows: list[tuple[float, float, float]]) -> None:
    ordered = [(NAN,) * 3 if any(map(math.isnan, row)) else tuple(sorted(row)) for row in rows]
    low, mean, high = (list(values) for values in zip(*ordered, strict=True))
    column = Column(coding, mean, low, high, gaps=any(map(math.isnan, mean)))
    for got in unpack(pack({1: column}), len(rows)).values():
        for at, put in enumerate(ordered):
            assert math.isnan(put[0]) == math.isnan(got.mean[at])
            if not math.isnan(put[0]):
                assert got.low[at] <= got.mean[at] <= got.high[at]
                assert close(got.low[at], put[0], coding)
                assert close(got.high[at], put[2], coding)


@given(st.sampled_from([RATE, *_STEPS]), st.lists(_NUMBERS, min_size=1, max_size=30))
def test_packing_again_changes_nothing(coding: int, values: list[float]) -> None:
    once = unpack(pack({7: Column.of_ticks(coding, values)}), len(values))
    again = unpack(pack(once), len(values))
    assert {slot: [*map(repr, column.mean)] for slot, column in again.items()} == {
        slot: [*map(repr, column.mean)] for slot, column in once.items()
    }


def test_one_of_many_columns_is_found() -> None:
    columns = {slot: Column.of_ticks(5, [slot + 0.25, NAN, slot + 0.5]) for slot in range(20)}
    got = unpack(pack(columns), 3, frozenset({13}))
    assert list(got) == [13]
    assert got[13].mean[0] == 13.25
    assert got[13].gaps


@pytest.mark.parametrize(
    ("owner", "metrics"),
    [("GPU-1", GPU_METRICS), ("", HOST_METRICS), ("serving:vllm 127.0.0.1:8000 m", SERVER_METRICS)],
)
def test_every_number_of_the_catalog_has_a_coding(owner: str, metrics: Mapping[str, Metric]) -> None:
    for key, metric in metrics.items():
        if isinstance(metric, Number):
            coding = coding_of(key, owner)
            value = float(min(metric.high, 2**44))
            assert close(unpack(pack({0: Column.of_ticks(coding, [value, 0.0])}), 2)[0].mean[0], value, coding)


def test_memory_and_energy_are_near_enough() -> None:
    used, energy = 79_000_000_123.0, 123_456_789_012.3
    memory = unpack(pack({0: Column.of_ticks(coding_of("memory_used", "GPU-1"), [used])}), 1)[0].mean[0]
    assert abs(memory - used) < 2**20
    joules = unpack(pack({0: Column.of_ticks(coding_of("energy", "GPU-1"), [energy])}), 1)[0].mean[0]
    assert abs(joules - energy) <= 0.05
