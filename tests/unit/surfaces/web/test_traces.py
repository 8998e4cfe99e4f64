"""Traces asked for on the page: with the token only, of own programs only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from gpulse.monitor import traces
from gpulse.monitor.presence import PresenceFile
from tests.unit.surfaces.web.asking import app_of, ask, hub_of

PID = os.getpid()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    PresenceFile(PID).write({"run": "r", "phase": "train", "step": 7})
    return str(tmp_path / "gpulse")


def test_a_program_is_listed_and_asked_and_its_answer_is_shown(folder: str) -> None:
    app = app_of()
    answer = ask(app, "/api/trace", "POST", body=json.dumps({"pid": PID, "steps": 5}))
    assert (answer.status, answer.json) == (200, {"pid": PID, "steps": 5})
    taken = traces.take(PID, folder)
    assert taken is not None
    assert taken[1] == 5
    traces.reply(PID, folder, taken[0], "done", path="/tmp/trace.json.gz")
    own = {one["pid"]: one for one in ask(app, "/api/monitors").json["monitors"]}[PID]
    assert (own["phase"], own["step"]) == ("train", 7)
    assert own["trace"] == {"state": "done", "text": "/tmp/trace.json.gz"}


def test_without_the_token_nobody_is_asked(folder: str) -> None:
    body = json.dumps({"pid": PID})
    assert ask(app_of(), "/api/trace", "POST", known=False, body=body).status == 401
    assert ask(app_of(token=None), "/api/trace", "POST", known=False, body=body).status == 403
    assert traces.take(PID, folder) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 422),
        ("[]", 422),
        ('{"pid": "1"}', 422),
        ('{"pid": true}', 422),
        ('{"pid": 1, "steps": 0}', 422),
        ('{"pid": 1}', 404),
        (" " * 2000, 413),
    ],
)
def test_what_is_no_request_is_refused(folder: str, body: str, status: int) -> None:
    answer = ask(app_of(), "/api/trace", "POST", body=body)
    assert (answer.status, answer.json["status"]) == (status, status)


def test_no_other_method_and_no_other_path(folder: str) -> None:
    assert ask(app_of(), "/api/trace", "GET").status == 405
    assert ask(app_of(), "/api/trace", "DELETE").status == 405
    assert ask(app_of(), "/api/monitors", "POST").status == 405


def test_a_server_of_a_simulated_machine_lists_no_program_of_this_computer(folder: str) -> None:
    hub = hub_of(1)
    hub.real = False
    app = app_of(hub)
    assert ask(app, "/api/monitors").json == {"monitors": []}
    assert ask(app, "/api/trace", "POST", body=json.dumps({"pid": PID})).status == 404
    assert traces.take(PID, folder) is None
