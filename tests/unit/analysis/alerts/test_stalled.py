"""A program that used a GPU and no longer does."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.present.alerts import alert_text
from tests.unit.analysis.alerts.machines import GIB, book, gpu, process, turns, watch


def training(utilization: float | None, **values: Any) -> Gpu:
    return gpu(utilization=utilization, processes=[process(held=40 * GIB, **values)])


def test_a_training_that_hangs_fires_once_and_clears_when_it_goes_on() -> None:
    found = watch(book("stalled"), lambda at: training(0 if 60 <= at < 500 else 90, tree_cpu_percent=400), 600)
    assert turns(found) == [("stalled", "fire", 240.0), ("stalled", "clear", 505.0)]
    assert alert_text(found[0]) == "ada's python (pid 42) has not used GPU 0 for 3m00s"
    assert alert_text(found[1]) == "ada's python (pid 42) uses GPU 0 again"


@pytest.mark.parametrize(
    "make",
    [
        lambda at: training(0),
        lambda at: training(90 if at % 120 < 20 else 0),
        lambda at: training(90 if at < 60 else None),
        lambda at: gpu(utilization=90 if at < 60 else 0),
        lambda at: training(90) if at < 60 else gpu(utilization=0),
        lambda at: training(90 if at < 60 else 0, type="G"),
    ],
    ids=["never used", "in bursts", "unknown", "nobody holds it", "it has ended", "a desktop"],
)
def test_what_is_no_stall_fires_nothing(make: Any) -> None:
    assert watch(book("stalled"), make, 1200) == []


def test_another_process_has_to_use_it_first() -> None:
    found = watch(book("stalled"), lambda at: training(90) if at < 60 else training(0, pid=43), 600)
    assert found == []


def test_its_end_clears_it() -> None:
    found = watch(book("stalled"), lambda at: training(90 if at < 60 else 0) if at < 300 else gpu(utilization=0), 400)
    assert [turn[1] for turn in turns(found)] == ["fire", "clear"]
    assert alert_text(found[1]).startswith("ada's python (pid 42) ended on GPU 0")


def test_it_is_only_on_if_asked_for() -> None:
    make = lambda at: training(90 if at < 60 else 0, cpu_percent=100)  # noqa: E731
    assert watch(book(), make, 600) == []
    assert turns(watch(book(stalled={"for": "1m"}), make, 600)) == [("stalled", "fire", 120.0)]
