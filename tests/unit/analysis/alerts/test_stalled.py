"""A program that used a GPU and no longer does."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.model.catalog import Gpu
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.present.alerts import alert_text
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, turns, watch


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


def test_where_it_hangs_is_asked_once_and_stays_with_the_alert() -> None:
    asked: list[tuple[tuple[str, ...], float]] = []

    def explain(event: Event, snapshot: Snapshot) -> dict[str, float | str]:
        asked.append((event.uuids, snapshot.time - START))
        return {"stacks": "42: wait threading.py:9 < step train.py:8"}

    rules = RuleSet(rules_from({"enable": ["stalled"]}), None, explain)
    make = lambda at: training(0 if 60 <= at < 500 else 90)  # noqa: E731
    (fired,) = watch(rules, make, 300)
    assert asked == [(("GPU-0",), 240.0)]
    assert (
        alert_text(fired)
        == "ada's python (pid 42) has not used GPU 0 for 3m00s; 42: wait threading.py:9 < step train.py:8"
    )
    assert rules.active[0].values["stacks"] == fired.values["stacks"]
    (cleared,) = watch(rules, make, 300, start=300)
    assert (cleared.state, len(asked)) == ("clear", 1)


def test_the_alert_is_told_when_its_explanation_fails() -> None:
    failed: list[str] = []

    def explain(event: Event, snapshot: Snapshot) -> dict[str, float | str]:
        raise OSError("no more processes")

    rules = RuleSet(rules_from({"enable": ["stalled"]}), lambda name, error: failed.append(f"{name}: {error}"), explain)
    assert turns(watch(rules, lambda at: training(90 if at < 60 else 0), 300)) == [("stalled", "fire", 240.0)]
    assert failed == ["stalled: no more processes"]


def test_other_alerts_are_not_explained() -> None:
    def explain(event: Event, snapshot: Snapshot) -> dict[str, float | str]:
        raise AssertionError

    rules = RuleSet(rules_from({"enable": ["lost"]}), None, explain)
    assert turns(watch(rules, lambda at: gpu(state="lost" if at else "ok"), 30))
