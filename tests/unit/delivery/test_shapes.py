"""Messages as a server is sent them: JSON, and what Alertmanager takes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpulse.analysis.alerts import Notice
from gpulse.delivery.post import Webhook
from gpulse.model.event import Event
from tests.unit.delivery.servers import server
from tests.unit.delivery.transitions import AT, hot, notice, turned

LINK = "https://node7/gpulse/"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def sent(shape: str, *notices: Notice, **more: Any) -> list[Any]:
    """Return what a service is sent."""
    with server() as taken:
        hook = Webhook(taken.url.replace("/services/SECRET", "/hook"), shape, host="node7", link=LINK, **more)
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


def test_json_has_every_alert_of_the_message() -> None:
    (body,) = sent("json", notice(hot(0), hot(1)))
    assert (body["kind"], body["count"], body["title"]) == ("fire", 2, "GPUs 0, 1: near temperature limit")
    assert [alert["gpu"] for alert in body["alerts"]] == ["0", "1"]
    assert body["alerts"][1]["limit"] == "above 86 °C"
    assert body["alerts"][1]["advice"].startswith("Check fans")
    assert body["link"].startswith(LINK)


def test_alertmanager_is_told_of_each_alert_and_again_while_it_lasts() -> None:
    bodies = sent("alertmanager", notice(hot(0), hot(1)), notice(hot(0), kind="refresh"), notice(hot(0, "clear")))
    assert sent.paths == ["/hook/api/v2/alerts"] * 3  # type: ignore[attr-defined]
    assert [[alert["labels"]["gpu"] for alert in body] for body in bodies] == [["0", "1"], ["0"], ["0"]]
    (first, _), (again,), (over,) = bodies
    assert first["labels"] == again["labels"] == over["labels"]
    assert first["labels"]["alertname"] == "hot"
    assert first["startsAt"] < first["endsAt"]
    assert over["endsAt"] == "2023-11-14T22:13:20.000Z"


def test_alertmanager_limits_messages_itself() -> None:
    many = [notice(turned("fire", "hot", "GPU-1", AT + at, f"hot {at}", {})) for at in range(5)]
    assert len(sent("alertmanager", *many, limit=2)) == 5
    assert len(sent("json", *many, limit=2)) == 2


def test_advice_is_that_of_the_verdict_or_else_written_for_the_alert() -> None:
    from gpulse.analysis.diagnosis.rules import BY_KEY
    from gpulse.model.condition import CONDITIONS
    from gpulse.present import alerts

    assert not alerts._ADVICE.keys() & BY_KEY.keys()  # one that a rule has would never be read
    assert alerts._ADVICE.keys() <= CONDITIONS.keys()
    assert alerts.alert_advice(hot(1).event).startswith("Check fans")
    assert alerts.alert_advice(Event(AT, "gpu-free")) == ""
