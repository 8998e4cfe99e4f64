"""Which GPUs are shown, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UnknownMetric, UsageError
from gpulse.model.catalog import Gpu, Host
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.surfaces.query.where import Choice

if TYPE_CHECKING:
    from gpulse.model.metric import Value


def order(key: str, values: list[Value | None], sort: str, where: str | None = None) -> list[float | None]:
    """The places of GPUs with these values of a metric, None where it is missing, once sorted."""
    gpus = [Gpu({"index": at} | ({} if value is None else {key: value})) for at, value in enumerate(values)]
    return [gpu.index for gpu in Choice(where, sort).apply(Snapshot(0.0, tuple(gpus))).gpus]


def test_without_either_everything_stays_as_it_is() -> None:
    assert order("utilization", [3, None, 1], "") == [0, 1, 2]
    assert Choice(None, None).wanted == Wanted()


@pytest.mark.parametrize(
    ("key", "values", "rising"),
    [
        ("utilization", [3, None, 1, 2.5], [2, 3, 0, 1]),
        ("utilization", [100, 9, 0], [2, 1, 0]),
        ("temperature_margin", [5, -3, 0], [1, 2, 0]),
        ("name", ["b", None, "a"], [2, 0, 1]),
        ("persistence_mode", [True, None, False], [2, 0, 1]),
        ("throttle_reasons", [("b",), None, (), ("a", "c")], [2, 3, 0, 1]),
    ],
)
def test_values_rise_or_with_a_dash_fall_and_missing_ones_are_last(
    key: str, values: list[Value | None], rising: list[int]
) -> None:
    assert order(key, values, key) == rising
    missing = values.count(None)
    there = rising[: len(rising) - missing]
    assert order(key, values, f"-{key}") == [*reversed(there), *rising[len(there) :]]


@given(st.lists(st.none() | st.integers(0, 3)), st.booleans())
def test_equal_values_keep_their_order(values: list[Value | None], falling: bool) -> None:
    found = order("utilization", values, "-utilization" if falling else "utilization")
    places = [int(at) for at in found if at is not None]
    assert sorted(places) == list(range(len(values)))
    keys = [
        (value is None, 0 if value is None else -int(str(value)) if falling else int(str(value))) for value in values
    ]
    assert places == sorted(range(len(values)), key=lambda at: keys[at])


def test_nvidia_smis_names_sort_too() -> None:
    assert order("utilization", [3, 1], "utilization.gpu") == [1, 0]
    assert order("power_draw", [3.0, 1.0, 9.0], "-power.draw") == [2, 0, 1]
    assert order("power_draw", [3.0, 1.0], "+power.draw") == [1, 0]


def test_a_filter_and_an_order_go_together() -> None:
    assert order("utilization", [50, 1, None, 4, 3], "-utilization", "utilization<5") == [3, 4, 1]


def test_both_say_what_they_need() -> None:
    assert Choice("utilization.gpu<5 or name=x", "-power_draw").wanted == Wanted({"utilization", "name", "power_draw"})


def test_all_but_the_gpus_stays() -> None:
    problems = (Problem("nvidia", "it is warm", "open a window"),)
    snapshot = Snapshot(7.0, (Gpu({"index": 0}),), Host({"name": "box"}), {"version": "1"}, problems)
    left = Choice("index>0", None).apply(snapshot)
    assert left.gpus == ()
    assert (left.time, left.host, left.driver, left.problems) == (7.0, snapshot.host, snapshot.driver, problems)


def test_a_metric_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownMetric, match="did you mean 'utilization'"):
        Choice(None, "-utilisation")
    with pytest.raises(UsageError):
        Choice(None, "-")
    with pytest.raises(UsageError):
        Choice("utilisation<5", None)
