"""A rate is growth over time, and a gap wherever two counts do not belong together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.sampling.assemble import Rates
from gpulse.sources.base import Counter


@given(
    speed=st.floats(0, 1e12),
    start=st.integers(0, 2**40),  # a float has 53 bits: beyond, the test itself would round
    begun=st.floats(0, 1e6),
    interval=st.floats(0.01, 3600),
)
def test_the_rate_does_not_depend_on_the_interval(speed: float, start: int, begun: float, interval: float) -> None:
    rates = Rates()
    assert rates.rate("x", Counter(start, begun)) is None
    grown = rates.rate("x", Counter(start + speed * interval, begun + interval))
    assert grown == pytest.approx(speed, rel=1e-3, abs=1.0)


def test_the_scale_makes_shares_of_time() -> None:
    rates = Rates()
    rates.rate("cpu", Counter(3.0, 10.0, 100.0))
    assert rates.rate("cpu", Counter(3.5, 11.0, 100.0)) == 50.0


def test_counts_too_close_to_each_other_are_one_count() -> None:
    rates = Rates()
    times = [(0.0, 0), (1.0, 10), (1.01, 40), (1.02, 50), (2.0, 60), (2.5, 70)]
    assert [rates.rate("x", Counter(value, at, apart=0.5)) for at, value in times] == [None, 10, 10, 10, 50, 20]


def test_a_first_count_has_no_rate() -> None:
    assert Rates().rate("x", Counter(5, 1.0)) is None


def test_a_counter_that_went_back_is_a_gap_and_then_counts_anew() -> None:
    rates = Rates()
    answers = [rates.rate("x", Counter(value, at)) for at, value in enumerate([100, 200, 50, 80])]
    assert answers == [None, 100, None, 30]


@pytest.mark.parametrize("elapsed", [0.0, -1.0])
def test_without_time_passing_there_is_no_rate(elapsed: float) -> None:
    rates = Rates()
    rates.rate("x", Counter(1, 10.0))
    assert rates.rate("x", Counter(2, 10.0 + elapsed)) is None


def test_a_counter_that_stands_still_has_a_rate_of_zero() -> None:
    rates = Rates()
    rates.rate("x", Counter(7, 0.0))
    assert rates.rate("x", Counter(7, 1.0)) == 0


def test_counters_are_kept_apart_by_name() -> None:
    rates = Rates()
    rates.rate(("gpu", 0), Counter(0, 0.0))
    assert rates.rate(("gpu", 1), Counter(9, 1.0)) is None
    assert rates.rate(("gpu", 0), Counter(4, 1.0)) == 4


def test_after_a_restart_every_count_is_a_first_one() -> None:
    rates = Rates()
    rates.rate("x", Counter(1, 0.0))
    rates.restart()
    assert rates.rate("x", Counter(2, 1.0)) is None


def test_counters_of_things_long_gone_are_forgotten_and_living_ones_kept() -> None:
    rates = Rates()
    rates.rate("gone", Counter(0, 0.0))
    for sample in range(1000):
        rates.rate("alive", Counter(sample, sample))
        rates.next_sample(float(sample))
    assert rates.rate("gone", Counter(1, 1000.0)) is None
    assert rates.rate("alive", Counter(1000, 1000.0)) == 1


def test_a_slow_counter_is_kept_between_a_hundred_samples_per_second() -> None:
    rates, found = Rates(), []
    for sample in range(2000):
        if sample % 500 == 0:
            found.append(rates.rate("slow", Counter(sample, sample / 100)))
        rates.rate("fast", Counter(sample, sample / 100))
        rates.next_sample(sample / 100)
    assert found == [None, 100, 100, 100]
