"""Messages in the shape of each service, as a server of that service is sent them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpulse.analysis.alerts import Notice, Transition
from gpulse.delivery.post import Webhook
from gpulse.model.catalog import Process
from gpulse.model.event import Event
from tests.unit.delivery.servers import server
from tests.unit.delivery.transitions import fire, notice, turned

AT = 1_700_000_000.0
LINK = "https://node7/gpulse/"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def hot(gpu: int, state: str = "fire") -> Transition:
    values: dict[str, float | str] = {"temperature": 90.0 + gpu, "above": 86.0}
    event = Event(
        AT, "hot", (str(gpu),), uuids=(f"GPU-{gpu}",), value=90.0 + gpu, values=values, rule="hot", alert=state
    )
    return Transition(event)


def idle() -> Transition:
    process = Process(
        {"pid": 42, "name": "python\n<@everyone> *x*", "user": "ada", "job": "123", "memory_used": 1 << 30}
    )
    values: dict[str, float | str] = {"memory_used": 1 << 30, "idle": 900.0, "user": "ada"}
    more: dict[str, Any] = {"process": process, "rule": "idle_allocation", "alert": "fire"}
    event = Event(AT, "idle-allocation", ("1",), uuids=("GPU-1",), value=1 << 30, values=values, **more)
    return Transition(event, "42")


def sent(shape: str, *notices: Notice, path: str = "", **more: Any) -> list[Any]:
    """Return what a service is sent."""
    with server() as taken:
        hook = Webhook(taken.url.replace("/services/SECRET", path or "/hook"), shape, host="node7", link=LINK, **more)
        said: list[str] = []
        hook.say = said.append
        hook.start()
        for one in notices:
            hook.put(one)
        hook.close()
        assert hook.end(time.monotonic() + 20)
        assert said == []
    sent.paths = taken.paths  # type: ignore[attr-defined]
    return taken.bodies


def test_a_message_says_whose_what_since_when_and_what_to_do() -> None:
    (body,) = sent("slack", notice(idle()))
    text = body["text"]
    assert text.startswith("🟠 node7: ada's python")
    assert "\nuser: ada\njob: 123\nvalue: 1.0 GiB\nsince: " in text
    assert "\nWhat to do: Shut the notebook kernel" in text
    assert f"{LINK}#/timelines?from=1699999700&amp;to=1700000300&amp;gpus=GPU-1" in text
    assert "<@" not in text
    (body,) = sent("slack", notice(hot(3)))
    assert "\nvalue: 93 °C\nlimit: above 86 °C\n" in body["text"]


def test_eight_gpus_are_one_message() -> None:
    (body,) = sent("slack", notice(*map(hot, range(8))))
    assert body["text"].startswith("🟠 node7: GPUs 0-7: near temperature limit\n")
    assert "GPU 7 is at 97 °C" in body["text"]
    (body,) = sent("slack", notice(*(hot(gpu, "clear") for gpu in range(8)), active=2))
    assert body["text"].startswith("✅ node7: resolved: GPUs 0-7: near temperature limit\n")
    assert "2 other alerts of this rule still active." in body["text"]


def test_json_has_every_alert_of_the_message() -> None:
    (body,) = sent("json", notice(hot(0), hot(1)))
    assert (body["kind"], body["count"], body["title"]) == ("fire", 2, "GPUs 0, 1: near temperature limit")
    assert [alert["gpu"] for alert in body["alerts"]] == ["0", "1"]
    assert body["alerts"][1]["limit"] == "above 86 °C"
    assert body["alerts"][1]["advice"].startswith("Check fans")
    assert body["link"].startswith(LINK)


def test_discord_mentions_nobody() -> None:
    (body,) = sent("discord", notice(idle()))
    assert body["allowed_mentions"] == {"parse": []}
    (embed,) = body["embeds"]
    assert embed["url"].startswith(LINK)
    assert "\\*x\\*" in embed["title"]
    assert len(sent("discord", notice(*map(hot, range(60))))[0]["embeds"][0]["description"]) <= 4096


def test_teams_gets_a_card() -> None:
    (body,) = sent("teams", notice(hot(3)))
    card = body["attachments"][0]["content"]
    assert body["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert (card["type"], card["body"][0]["color"]) == ("AdaptiveCard", "Warning")
    assert "GPU 3 is at 93 °C" in card["body"][0]["text"]
    assert card["actions"][0]["url"].startswith(LINK)


def test_ntfy_is_told_the_topic_and_how_urgent_it_is() -> None:
    bodies = sent(
        "ntfy",
        notice(fire("lost", "GPU-1", AT, "lost", {}, severity="critical")),
        notice(hot(1, "clear")),
        path="/gpus",
    )
    assert [(body["topic"], body["priority"]) for body in bodies] == [("gpus", 5), ("gpus", 2)]
    assert bodies[0]["click"].startswith(LINK)
    assert sent.paths == ["/", "/"]  # type: ignore[attr-defined]


def test_pagerduty_has_one_incident_for_a_rule_until_the_last_alert_is_over() -> None:
    bodies = sent(
        "pagerduty",
        notice(hot(0), hot(1)),
        notice(hot(0), kind="ack"),
        notice(hot(0, "clear"), active=1),
        notice(hot(1, "clear"), active=0),
        key="SECRET",
    )
    assert [body["event_action"] for body in bodies] == ["trigger", "acknowledge", "resolve"]
    assert {body["dedup_key"] for body in bodies} == {"gpulse/node7/hot"}
    assert {body["routing_key"] for body in bodies} == {"SECRET"}
    assert bodies[0]["payload"]["severity"] == "warning"
    assert bodies[0]["payload"]["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_alertmanager_is_told_of_each_alert_and_again_while_it_lasts() -> None:
    bodies = sent("alertmanager", notice(hot(0), hot(1)), notice(hot(0), kind="refresh"), notice(hot(0, "clear")))
    assert sent.paths == ["/hook/api/v2/alerts"] * 3  # type: ignore[attr-defined]
    assert [[alert["labels"]["gpu"] for alert in body] for body in bodies] == [["0", "1"], ["0"], ["0"]]
    (first, _), (again,), (over,) = bodies
    assert first["labels"] == again["labels"] == over["labels"]
    assert first["labels"]["alertname"] == "hot"
    assert first["startsAt"] < first["endsAt"]
    assert over["endsAt"] == "2023-11-14T22:13:20.000Z"


def test_more_messages_than_the_limit_are_counted_and_told_with_the_next() -> None:
    many = [notice(turned("fire", "hot", "GPU-1", AT + at, f"hot {at}", {})) for at in range(5)]
    later = notice(turned("fire", "hot", "GPU-1", AT + 3601, "later", {}))
    bodies = sent("slack", *many, later, limit=2)
    assert len(bodies) == 3
    assert "This is the last message for now" in bodies[1]["text"]
    assert "3 alerts before this one were not sent" in bodies[2]["text"]
    assert len(sent("alertmanager", *many, limit=2)) == 5


def test_advice_is_that_of_the_verdict_or_else_written_for_the_alert() -> None:
    from gpulse.analysis.diagnosis.rules import BY_KEY
    from gpulse.model.condition import CONDITIONS
    from gpulse.present import alerts

    assert not alerts._ADVICE.keys() & BY_KEY.keys()  # one that a rule has would never be read
    assert alerts._ADVICE.keys() <= CONDITIONS.keys()
    assert alerts.alert_advice(hot(1).event).startswith("Check fans")
    assert alerts.alert_advice(Event(AT, "gpu-free")) == ""
