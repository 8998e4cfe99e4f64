"""A series says what a plain list of the same values would, in bounded memory."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.summary import _MOST, WeightedSeries

VALUES = st.floats(-1e9, 1e9) | st.integers(0, 100)
SECONDS = st.floats(1e-6, 1e4)
WEIGHTED = st.lists(st.tuples(VALUES, SECONDS), min_size=1, max_size=60)


def series(pairs: list[tuple[float, float]]) -> WeightedSeries:
    made = WeightedSeries()
    for value, seconds in pairs:
        made.add(value, seconds)
    return made


def percentile(pairs: list[tuple[float, float]], percent: float) -> float:
    """Return the first value, from the lowest, at which this share of the time has passed."""
    left = sum(seconds for _, seconds in pairs) * percent / 100
    for value, seconds in sorted(pairs):
        left -= seconds
        if left <= 1e-9:
            return value
    return max(pairs)[0]


@given(pairs=WEIGHTED)
def test_mean_and_extremes_are_those_of_the_list(pairs: list[tuple[float, float]]) -> None:
    made = series(pairs)
    total = sum(seconds for _, seconds in pairs)
    assert made.mean == pytest.approx(sum(value * seconds for value, seconds in pairs) / total, rel=1e-9, abs=1e-3)
    assert (made.lowest, made.highest) == (min(pairs)[0], max(pairs)[0])
    assert made.seconds == pytest.approx(total)


@given(pairs=WEIGHTED, percents=st.lists(st.floats(0, 100), min_size=2, max_size=6))
def test_percentiles_lie_between_the_extremes_and_rise(pairs: list[tuple[float, float]], percents: list[float]) -> None:
    found = [series(pairs).percentile(percent) for percent in sorted(percents)]
    assert found == sorted(found)  # type: ignore[type-var]
    assert all(min(pairs)[0] <= value <= max(pairs)[0] for value in found if value is not None)
    assert None not in found


@given(values=st.lists(st.integers(0, 100), min_size=1, max_size=50), percent=st.integers(0, 100))
def test_few_values_give_the_exact_percentile(values: list[int], percent: int) -> None:
    pairs = [(float(value), 1.0) for value in values]
    assert series(pairs).percentile(percent) == percentile(pairs, percent)


def test_a_value_counts_by_its_time() -> None:
    made = series([(0.0, 9.0), (100.0, 1.0)])
    assert made.mean == 10.0
    assert (made.percentile(50), made.percentile(95)) == (0.0, 100.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_time_is_nothing_said(seconds: float) -> None:
    made = series([(50.0, seconds)])
    assert (made.mean, made.percentile(50), made.seconds) == (None, None, 0.0)


def _noise(count: int) -> list[float]:
    dice = random.Random(7)
    return [dice.gauss(50, 10) for _ in range(count)]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([float(at % 101) for at in range(40_000)], id="ramps"),
        pytest.param([100.0 * (at % 2) for at in range(40_000)], id="every other"),
        pytest.param([100.0 * (at % 16 < 4) for at in range(40_000)], id="four of sixteen"),
        pytest.param(_noise(20_000), id="noise"),
    ],
)
def test_a_long_series_keeps_its_percentiles_nearly_and_the_rest_exactly(values: list[float]) -> None:
    made = series([(value, 1.0) for value in values])
    assert len(made._values) <= _MOST
    assert made.mean == pytest.approx(sum(values) / len(values))
    assert (made.lowest, made.highest) == (min(values), max(values))
    for percent in (5, 25, 50, 75, 95):
        found = made.percentile(percent)
        assert found is not None
        below = sum(value < found for value in values) / len(values)
        upto = sum(value <= found for value in values) / len(values)
        assert below - 0.03 <= percent / 100 <= upto + 0.03


def test_times_of_unlike_length_keep_their_weight_when_thinned() -> None:
    made = series([(float(at % 2 * 100), 9.0 if at % 2 else 1.0) for at in range(3 * _MOST)])
    assert made.mean == pytest.approx(90.0)
    assert made.percentile(50) == 100.0
    assert made.percentile(5) == 0.0
