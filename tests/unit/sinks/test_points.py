"""Samples gathered into points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.model.event import Event
from gpulse.sinks.base import Alert, Means, Point, Points
from tests.unit.samples import START, sample


def gathered(points: Points, *samples: tuple[float, int | None, float]) -> list[Point]:
    made = [points.add(sample(elapsed, {"a": value}, step=step)) for elapsed, step, value in samples]
    return [point for point in (*made, points.finish()) if point is not None]


def test_every_sample_is_a_point_with_its_own_time_and_step() -> None:
    points = gathered(Points("seconds"), (0.1, None, 1.0), (0.9, None, 2.0), (1.0, None, 5.0), (7.5, None, 6.0))
    assert [(point.step, point.time, point.values["a"]) for point in points] == [
        (0, START + 0.1, 1.0),
        (1, START + 0.9, 2.0),
        (2, START + 1.0, 5.0),
        (7, START + 7.5, 6.0),
    ]


def test_a_point_does_not_wait_for_the_next_sample() -> None:
    point = Points("seconds").add(sample(3.1, {"a": 1.0}))
    assert point is not None
    assert point.step == 3


def test_samples_of_one_training_step_are_one_point_and_those_before_the_first_none() -> None:
    points = gathered(Points("train"), (0, None, 9.0), (1, 0, 1.0), (2, 0, 3.0), (3, 500, 5.0))
    assert [(point.step, point.values["a"]) for point in points] == [(0, 2.0), (500, 5.0)]


def test_what_comes_after_its_point_was_given_away_makes_no_second_one() -> None:
    points = Points("train")
    assert points.add(sample(3.1, {"a": 1.0}, step=4)) is None
    assert points.finish() is not None
    assert points.add(sample(3.9, {"a": 2.0}, step=4)) is None
    assert points.finish() is None


def test_the_seconds_of_a_second_monitor_go_on_after_those_of_the_first() -> None:
    points = Points("seconds")
    assert [point.step for point in gathered(points, (0, None, 1.0), (5, None, 1.0))] == [0, 5]
    points.resume()
    assert [point.step for point in gathered(points, (0, None, 1.0), (1, None, 1.0))] == [6, 7]


def test_the_steps_of_a_second_monitor_are_the_program_s() -> None:
    points = Points("train")
    assert [point.step for point in gathered(points, (0, 0, 1.0), (1, 9, 1.0))] == [0, 9]
    points.resume()
    assert [point.step for point in gathered(points, (0, 3, 1.0), (1, 4, 1.0))] == [3, 4]


def test_a_value_missing_in_one_sample_does_not_count_as_zero() -> None:
    means = Means()
    means.add({"a": 4.0, "b": 2.0})
    means.add({"a": 6.0})
    assert means.values() == {"a": 5.0, "b": 2.0}


def test_an_axis_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match='choose "seconds" or "train"'):
        Points("minutes")  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.none() | st.integers(0, 50)), max_size=30), st.booleans())
def test_steps_grow_whatever_comes(moments: list[tuple[float, int | None]], by_second: bool) -> None:
    points = gathered(Points("seconds" if by_second else "train"), *((at, step, 1.0) for at, step in moments))
    steps = [point.step for point in points]
    assert steps == sorted(set(steps))


def test_samples_and_alerts_can_be_kept_in_a_set_and_equal_ones_are_one() -> None:
    alerts = [Alert(START, "lost", "fire", "critical", "GPU 0: lost.", Event(START, "lost")) for _ in range(2)]
    assert len({sample(1.0, {"gpu0/power": 3.0}), sample(1.0, {"gpu0/power": 3.0}), sample(2.0, {})}) == 2
    assert len({*alerts}) == 1
