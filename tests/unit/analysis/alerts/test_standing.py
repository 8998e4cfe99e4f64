"""An active alert says what is true now: whether its condition still holds, when it last did, and how often it has."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.analysis.alerts.latch import COUNTED, Latch
from gpulse.present.alerts import alert_plain
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, watch

FULL: dict[str, Any] = {"memory_used": 99 * GIB, "memory_percent": 99.0}
ROOM: dict[str, Any] = {"memory_used": 41 * GIB, "memory_percent": 41.0}


def test_what_holds_is_firing_and_what_does_not_has_ended() -> None:
    rules = book("memory", memory={"clear_for": "10m"})
    watch(rules, lambda at: gpu(5, **FULL), 60)
    (alert,) = [alert_plain(one) for one in rules.active]
    assert (alert["state"], alert["text"]) == ("firing", "GPU 5 memory is 99 % full")
    assert (alert["last_true"], alert["repeats"]) == (START + 59, 1)
    watch(rules, lambda at: gpu(5, **ROOM), 200, start=60)
    (alert,) = [alert_plain(one) for one in rules.active]
    assert (alert["state"], alert["text"]) == ("ended", "GPU 5 memory was 99 % full 3 min ago, now 41 %")
    assert (alert["time"], alert["last_true"]) == (START + 10, START + 59)


def test_how_often_it_was_is_told() -> None:
    rules = book("memory", memory={"clear_for": "10m"})
    watch(rules, lambda at: gpu(5, **(FULL if at % 60 < 30 else ROOM)), 7 * 60)
    (alert,) = [alert_plain(one) for one in rules.active]
    assert alert["repeats"] == 7
    assert alert["text"] == "GPU 5 memory was 99 % full seconds ago, now 41 %; 7 times in 30 min"


@pytest.mark.parametrize(
    ("rule", "bad", "well", "text"),
    [
        ("hot", {"temperature": 91}, {"temperature": 70}, "GPU 0 was at 91 °C seconds ago, now 70 °C"),
        (
            "throttled",
            {"throttle_reasons": ("sw_thermal_slowdown",)},
            {"throttle_reasons": ()},
            "GPU 0 throttled: too hot; last seen seconds ago",
        ),
    ],
)
def test_the_words_of_what_has_ended(rule: str, bad: dict[str, Any], well: dict[str, Any], text: str) -> None:
    rules = book(rule)
    watch(rules, lambda at: gpu(0, **(bad if at < 50 else well)), 60)
    (alert,) = [alert_plain(one) for one in rules.active]
    assert (alert["state"], alert["text"]) == ("ended", text)


def test_a_rule_of_the_users_own_says_its_value() -> None:
    rules = book(rule=[{"name": "busy", "metric": "utilization", "above": 95, "clear_for": "5m"}])
    watch(rules, lambda at: gpu(0, utilization=99 if at < 50 else 3), 200)
    assert [alert_plain(one)["text"] for one in rules.active] == ["GPU 0: Utilization was 99 % 2 min ago, now 3 %"]


def test_what_nobody_knows_stays_as_it_was_with_its_time() -> None:
    rules = book("pcie_degraded")
    slow: dict[str, Any] = {"pcie_width": 4, "pcie_width_max": 16}
    watch(rules, lambda at: gpu(0, utilization=99 if at < 50 else 0, **slow), 200)
    (alert,) = [alert_plain(one) for one in rules.active]
    assert (alert["state"], alert["last_true"]) == ("firing", START + 49)


def test_the_end_of_an_alert_says_when_it_last_held() -> None:
    rules = book("memory")
    found = watch(rules, lambda at: gpu(5, **(FULL if at < 40 else ROOM)), 100)
    assert [(one.state, one.last_true - START) for one in found] == [("fire", 10.0), ("clear", 39.0)]


def test_an_alert_whose_process_ended_is_as_bad_as_it_was() -> None:
    rules = book("idle_allocation", idle_allocation={"for": "10s"})
    held = process(held=5 * GIB, cpu_percent=0.0)
    found = watch(rules, lambda at: gpu(utilization=0, processes=[held] if at < 30 else []), 40)
    assert [(one.state, one.severity) for one in found] == [("fire", "warn"), ("clear", "warn")]


class TestCount:
    def test_a_spell_counts_once_it_has_lasted_and_for_half_an_hour(self) -> None:
        latch = Latch()
        for now, holds in ((0.0, True), (9.0, True), (9.5, False), (20.0, True), (30.0, True), (40.0, True)):
            latch.step(now, holds, not holds, 10.0, 1e9)
        assert latch.times(40.0) == 1  # the first lasted 9 s only
        assert latch.times(30.0 + COUNTED - 0.1) == 1
        assert latch.times(30.0 + COUNTED) == 0

    def test_time_in_which_nobody_knows_does_not_make_two_of_one(self) -> None:
        latch = Latch()
        for now, holds in enumerate((True, None, True, False, True)):
            latch.step(float(now), holds, False, 0.0, 1e9)
        assert latch.times(5.0) == 2

    def test_one_that_fires_with_pauses_counts_too(self) -> None:
        latch = Latch()
        turns = [latch.step(float(at), at % 3 != 0, at % 3 == 0, 3.0, 9.0, 60.0) for at in range(12)]
        assert True in turns
        assert latch.times(12.0) >= 1
