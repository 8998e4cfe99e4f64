"""Running programs with a Monitor on the page: those of the server's own user only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from gpulse.monitor.presence import PresenceFile
from tests.unit.surfaces.web.asking import app_of, ask, hub_of

PID = os.getpid()


@pytest.fixture(autouse=True)
def present(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    PresenceFile(PID).write({"run": "r", "phase": "train", "step": 7})


def test_a_program_is_listed() -> None:
    own = {one["pid"]: one for one in ask(app_of(), "/api/monitors").json["monitors"]}[PID]
    assert (own["run"], own["phase"], own["step"]) == ("r", "train", 7)
    assert ask(app_of(), "/api/monitors", "POST").status == 405


def test_a_server_of_a_simulated_machine_lists_no_program_of_this_computer() -> None:
    hub = hub_of(1)
    hub.real = False
    assert ask(app_of(hub), "/api/monitors").json == {"monitors": []}
