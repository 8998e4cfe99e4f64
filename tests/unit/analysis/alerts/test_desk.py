"""The desk: who is told, when, how often, and what a restart changes: nothing."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from gpulse.analysis.alerts import Desk, Notice, TellingPolicy, Transition
from gpulse.errors import UsageError
from gpulse.model.event import Event, Silence, new_silence
from gpulse.model.when import Hours
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, turns, watch

NOW = time.mktime((2026, 11, 16, 23, 0, 0, 0, 0, -1))  # a Monday, at 11 p.m. here


def alert(index: int = 0, state: str = "fire", rule: str = "hot", once: bool = False, **fields: Any) -> Transition:
    event = Event(NOW, "hot", (str(index),), uuids=(f"GPU-{index}",), rule=rule, alert=state, **fields)
    return Transition(event, once=once)


def told(found: list[Notice]) -> list[tuple[str, int]]:
    return [(one.kind, len(one.alerts)) for one in found]


def test_alerts_of_a_rule_that_come_together_are_one_message() -> None:
    desk = Desk(TellingPolicy(wait=5))
    assert desk.take([alert(0)], [], NOW) == []
    assert desk.take([alert(index) for index in range(1, 8)], [], NOW + 3) == []
    assert told(desk.take([], [], NOW + 5)) == [("fire", 8)]
    assert desk.take([], [], NOW + 600) == []
    desk.take([alert(index, "clear") for index in range(3)], [], NOW + 700)
    (over,) = desk.take([], [], NOW + 705)
    assert (over.kind, len(over.alerts), over.active) == ("clear", 3, 5)


def test_what_ends_before_it_was_told_is_told_with_its_end() -> None:
    desk = Desk(TellingPolicy(wait=5))
    desk.take([alert()], [], NOW)
    desk.take([alert(state="clear")], [], NOW + 1)
    assert told(desk.take([], [], NOW + 9)) == [("fire", 1), ("clear", 1)]


def test_a_silence_is_kept_until_it_ends_and_then_the_alert_is_told() -> None:
    desk = Desk(TellingPolicy(wait=0))
    desk.silences = (Silence("a", NOW, NOW + 60, rule="hot", gpus=["0"]),)
    assert told(desk.take([alert(0), alert(1)], [], NOW)) == [("fire", 1)]
    assert desk.take([], [], NOW + 59) == []
    assert told(desk.take([], [], NOW + 60)) == [("fire", 1)]


def test_the_end_of_a_silenced_alert_is_not_told_and_that_of_a_known_one_is() -> None:
    desk = Desk(TellingPolicy(wait=0))
    assert told(desk.take([alert(0)], [], NOW)) == [("fire", 1)]
    desk.silences = (Silence("a", NOW, NOW + 600),)
    assert desk.take([alert(1)], [], NOW + 1) == []
    assert desk.take([alert(1, "clear")], [], NOW + 2) == []
    assert told(desk.take([alert(0, "clear")], [], NOW + 3)) == [("clear", 1)]


@pytest.mark.parametrize(
    ("silence", "covered"),
    [
        ({}, True),
        ({"rule": "hot"}, True),
        ({"rule": "lost"}, False),
        ({"gpus": ["3"]}, True),
        ({"gpus": ["GPU-3"]}, True),
        ({"gpus": ["GPU"]}, False),
        ({"gpus": ["2"]}, False),
        ({"user": "ada"}, True),
        ({"user": "bob"}, False),
        ({"rule": "hot", "gpus": ["3"], "user": "bob"}, False),
    ],
)
def test_what_a_silence_covers(silence: dict[str, Any], covered: bool) -> None:
    event = alert(3, process=process(user="ada")).event
    assert Silence("a", NOW, NOW + 1, **silence).covers(event, NOW) is covered
    assert not Silence("a", NOW, NOW + 1).covers(event, NOW + 1)


def test_quiet_hours_hold_back_what_is_not_critical() -> None:
    desk = Desk(TellingPolicy(wait=0, quiet=[Hours("22:00-07:00")]))
    fatal = alert(1, severity="critical", rule="lost")
    assert [one.alerts[0].rule for one in desk.take([alert(0), fatal, alert(2, once=True)], [], NOW)] == ["lost"]
    assert told(desk.take([], [], NOW + 8 * 3600)) == [("fire", 2)]


def test_maintenance_holds_back_everything() -> None:
    desk = Desk(TellingPolicy(wait=0, maintenance=[Hours("Mon 22:00-23:30")]))
    assert desk.take([alert(1, severity="critical")], [], NOW) == []
    assert told(desk.take([], [], NOW + 1800)) == [("fire", 1)]


def test_what_lasts_is_told_again_until_it_is_acknowledged() -> None:
    desk = Desk(TellingPolicy(wait=0, repeat=3600))
    desk.take([alert(0), alert(1)], [], NOW)
    assert told(desk.take([], [], NOW + 3600)) == [("repeat", 2)]
    assert desk.acknowledge(alert(0).id, "ada", NOW) is not None
    assert desk.acknowledge(alert(0).id, "ada", NOW) is None
    assert desk.acknowledge("none", "ada", NOW) is None
    assert told(desk.take([], [], NOW + 7200)) == [("repeat", 1)]
    assert desk.standing(alert(0), NOW)["acknowledged"] == {"by": "ada", "time": NOW}
    desk.take([alert(0, "clear")], [], NOW)
    desk.take([alert(0)], [], NOW)
    assert desk.standing(alert(0), NOW)["acknowledged"] is None  # another time it is another alert


def test_a_desk_that_takes_over_tells_nothing_twice() -> None:
    first, second = Desk(TellingPolicy(wait=0)), Desk(TellingPolicy(wait=0))
    first.silences = (Silence("a", NOW, NOW + 60, gpus=["1"]),)
    first.take([alert(0), alert(1)], [], NOW)
    first.acknowledge(alert(0).id, "ada", NOW)
    rows = json.loads(json.dumps(first.to_plain()))
    assert [one.id for one in second.restore([*rows, {}, {"event": 3}])] == [alert(0).id, alert(1).id]
    assert second.standing(alert(0), NOW)["acknowledged"] == {"by": "ada", "time": NOW}
    assert told(second.take([], [], NOW + 1)) == [("fire", 1)]  # of the one that was silenced
    assert told(second.take([alert(0, "clear")], [], NOW + 2)) == [("clear", 1)]


class TestRulesThatTakeOver:
    def test_what_goes_on_is_not_told_again_and_clears(self) -> None:
        rules = book("hot")
        (fired,) = watch(rules, lambda at: gpu(temperature=95), 60)
        after = book("hot")
        assert after.resume([fired]) == []
        found = watch(after, lambda at: gpu(temperature=95 if at < 120 else 50), 300, start=100)
        assert turns(found) == [("hot", "clear", 180.0)]

    def test_a_process_that_has_ended_meanwhile_ends_its_alert(self) -> None:
        (fired,) = watch(book("idle_allocation"), lambda at: gpu(utilization=0, processes=[process(held=GIB)]), 1000)
        after = book("idle_allocation")
        after.resume([fired])
        found = watch(after, lambda at: gpu(utilization=0), 5, start=2000)
        assert [(one.rule, one.state, one.event.kind) for one in found] == [("idle_allocation", "clear", "process-end")]
        assert after.active == ()

    def test_a_gpu_that_is_still_gone_stays_lost(self) -> None:
        rules = book("lost")
        (fired,) = watch(rules, lambda at: (gpu(0), gpu(1)) if at < 5 else (gpu(0),), 60)
        after = book("lost")
        after.resume([fired])
        assert watch(after, lambda at: (gpu(0),), 2000, start=100, step=10) == []
        assert turns(watch(after, lambda at: (gpu(0), gpu(1)), 5, start=3000)) == [("lost", "clear", 3000.0)]

    def test_a_rule_that_is_off_now_forgets(self) -> None:
        (fired,) = watch(book("hot"), lambda at: gpu(temperature=95), 60)
        assert book("lost").resume([fired]) == [fired]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("22:00-07:00", ["Mon 22:00", "Tue 06:59"], ["Mon 21:59", "Mon 07:00"]),
        ("Mon-Fri 09:00-18:00", ["Mon 09:00", "Fri 17:59"], ["Sat 10:00", "Mon 18:00"]),
        ("Sat,Sun", ["Sat 00:00", "Sun 23:59"], ["Fri 23:59", "Mon 00:00"]),
        ("Fri 22:00-02:00", ["Fri 23:00", "Sat 01:59"], ["Fri 01:00", "Sat 22:30"]),
        ("sat-mon", ["Sat 12:00", "Mon 12:00"], ["Tue 12:00"]),
    ],
)
def test_hours(text: str, inside: list[str], outside: list[str]) -> None:
    def at(moment: str) -> float:
        day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun").index(moment[:3])
        return time.mktime((2026, 11, 16 + day, int(moment[4:6]), int(moment[7:]), 0, 0, 0, -1))

    assert [Hours(text).contain(at(moment)) for moment in inside] == [True] * len(inside)
    assert [Hours(text).contain(at(moment)) for moment in outside] == [False] * len(outside)


@pytest.mark.parametrize("text", ["", "22:00", "25:00-26:00", "Foo 10:00-11:00", "10:00-10:00", "10:70-11:00", "Mon-"])
def test_what_are_no_hours(text: str) -> None:
    with pytest.raises(ValueError, match="hours such as"):
        Hours(text)


@pytest.mark.parametrize(
    "given", [{"rule": "hott"}, {"gpus": ["x"]}, {"gpus": ["3-1"]}, {"seconds": 0}, {"seconds": 1e9}]
)
def test_what_is_no_silence(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        new_silence("ada", **{"seconds": 60.0, "rules": ["hot"], **given})
    assert new_silence("ada", 60, ["hot"], rule="hot", gpus=["0-2", "GPU-1a2b"]).gpus == ("0", "1", "2", "GPU-1a2b")


def test_a_leak_of_one_step_an_epoch_is_found_and_steps_that_end_are_none() -> None:
    def leaking(at: float) -> Any:
        return gpu(memory_used=20 * GIB, processes=[process(held=(4 + at // 1800) * GIB, running_time=600 + at)])

    def loading(at: float) -> Any:
        return gpu(
            memory_used=20 * GIB, processes=[process(held=(4 + min(at // 1800, 3)) * GIB, running_time=600 + at)]
        )

    found = watch(book("leak"), leaking, 5 * 3600, step=10)
    assert [(one.rule, one.state) for one in found] == [("leak", "fire")]
    assert found[0].time - START < 3.5 * 3600
    assert 0.4 * GIB / 1800 < float(found[0].values["bytes_per_second"]) < 1.5 * GIB / 1800
    assert watch(book("leak"), loading, 12 * 3600, step=20) == []
