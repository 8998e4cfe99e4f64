"""Alerts of a real server: sent to real receivers, silenced from the command line and over HTTP, and not sent twice after a restart."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, chromium
from tests.e2e.lab import environment
from tests.e2e.serving import Serving, plain_environment
from tests.fake_nvml import Scenario
from tests.unit.delivery.servers import server

RULE = '[[alerts.rule]]\nname = "cool"\nmetric = "temperature"\nbelow = 200\ngpu = "0-7"\nclear_for = 0\n'


def until(condition: Callable[[], object], seconds: float = 40.0) -> None:
    """Wait for what another program does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def machine(folder: Path) -> dict[str, str]:
    """Return the environment of a server on a scripted machine with eight GPUs: a demo delivers no alerts."""
    return plain_environment(folder, no_proxy="*", **environment(Scenario.load("dgx-h100x8"), folder))


def alerts(folder: Path, *words: str, code: int = 0) -> str:
    """Run `gpulse alerts`; return what it prints."""
    command = [sys.executable, "-m", "gpulse", "alerts", *words]
    done = subprocess.run(
        command, env=plain_environment(folder), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def configure(folder: Path, hook: str, chat: str, more: str = "") -> None:
    (folder / "config.toml").write_text(
        f"[serve]\ninterval = 0.2\n[alerts]\nenable = []\nlog = false\ngroup_wait = 1\n{more}\n"
        f'[[alerts.webhook]]\nurl = "{hook}"\nretries = 0\n'
        f'[[alerts.webhook]]\nurl = "apprise:{chat}"\n{RULE}'
    )


def test_eight_gpus_are_one_message_and_a_restart_sends_nothing_again(tmp_path: Path) -> None:
    environ = machine(tmp_path)
    place = ("--history", str(tmp_path / "history.db"))
    with server() as taken, server() as chat:
        configure(tmp_path, taken.url, chat.url.replace("http", "json"))
        with Serving(tmp_path, *place, environ=environ, source="") as serving:
            until(lambda: taken.bodies and chat.bodies)
            (body,) = taken.bodies
            assert (body["kind"], body["count"]) == ("fire", 8)
            assert body["link"].startswith(serving.link.partition("?")[0])
            assert "GPUs 0-7: beyond its threshold" in chat.bodies[0]["title"]
            assert alerts(tmp_path, "list").count(" warn ") == 8
            first = json.loads(alerts(tmp_path, "--json"))
            assert first["watched"]
            id = first["alerts"][0]["id"]
            alerts(tmp_path, "ack", id)
            until(lambda: json.loads(alerts(tmp_path, "--json"))["alerts"][0]["acknowledged"])
            status, _, answer = serving.post(
                "/api/alerts", {"action": "silence", "for": "1h", "rule": "cool", "gpus": ["3"]}
            )
            assert status == 200, answer
            silence = json.loads(answer)["id"]
            until(lambda: "alert-silenced" in kinds(serving))
            assert {"alert-acknowledged", "alert-silenced"} <= kinds(serving)
        with Serving(tmp_path, *place, environ=environ, source="") as serving:
            until(lambda: serving.get("/api/alerts")[0] == 200)  # 503 until the first sample
            snapshot = json.loads(serving.get("/api/alerts")[2])
            assert snapshot["silences"][0]["id"] == silence
            assert snapshot["alerts"][0]["acknowledged"]
            assert alerts(tmp_path, "silence", "--end", silence).startswith("ended the silence of cool on GPU 3")
            until(lambda: "alert-unsilenced" in kinds(serving))
        assert [one["kind"] for one in taken.bodies] == ["fire"]
        configure(tmp_path, taken.url, chat.url.replace("http", "json"), more='maintenance = ["Mon-Sun"]')
        (tmp_path / "config.toml").write_text(
            (tmp_path / "config.toml").read_text().replace("below = 200", "below = 1")
        )
        with Serving(tmp_path, *place, environ=environ, source=""):
            until(lambda: len(taken.bodies) == 2 and len(chat.bodies) == 2)
        assert [(one["kind"], one["count"], one["active"]) for one in taken.bodies] == [("fire", 8, 8), ("clear", 8, 0)]


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium here")
def test_the_page_silences_and_ends_the_silence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[serve]\ninterval = 0.5\n[alerts]\nenable = []\nlog = false\n{RULE}")
    with (
        Serving(tmp_path, environ=machine(tmp_path), source="") as serving,
        closing(Browser(tmp_path / "profile")) as browser,
    ):
        until(lambda: serving.json("/api/alerts")["alerts"])
        browser.open(serving.link)
        form = "[...document.querySelectorAll('.decide form')].pop()"
        browser.until(f"{form} !== undefined")
        browser.evaluate(f"{form}.querySelector('input').value = 'new <b>fan</b>'; {form}.requestSubmit()")
        until(lambda: serving.json("/api/alerts")["silences"])
        (silence,) = serving.json("/api/alerts")["silences"]
        assert (silence["rule"], len(silence["gpus"]), silence["reason"]) == ("cool", 1, "new <b>fan</b>")
        browser.until(
            "[...document.querySelectorAll('.problems .decided')].some(one => one.textContent.includes('new <b>fan</b>'))"
        )
        browser.evaluate(
            "[...document.querySelectorAll('.decide button')].find(one => one.textContent === 'End the silence').click()"
        )
        until(lambda: not serving.json("/api/alerts")["silences"])
        assert browser.complaints == []


def kinds(serving: Serving) -> set[str]:
    return {event["kind"] for event in json.loads(serving.get("/api/events")[2])["events"]}


def test_a_test_message_goes_to_everybody_and_says_who_did_not_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with server() as taken, server() as chat:
        configure(tmp_path, taken.url, chat.url.replace("http", "json"))
        said = alerts(tmp_path, "test")
        assert said.splitlines() == [
            f"webhook {taken.url.removesuffix('/services/SECRET')}/***: ok",
            "apprise json://***: ok",
        ]
        assert chat.bodies[0]["title"].endswith("this is a test message of gpulse")
        chat.answers[:] = [403]
        assert "403" in alerts(tmp_path, "test", code=1)


@pytest.mark.parametrize(
    ("words", "code"),
    [(["shout"], 2), (["silence"], 2), (["silence", "hott"], 2), (["ack"], 2), (["ack", "none"], 1), (["test"], 1)],
)
def test_what_makes_no_sense_is_said_in_a_sentence(tmp_path: Path, words: list[str], code: int) -> None:
    assert alerts(tmp_path, *words, code=code) == ""
