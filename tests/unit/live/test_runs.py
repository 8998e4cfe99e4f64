"""Runs on the page: the list, one run with its lines of code and flame graph, and a running program that is asked for its stacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from gpulse.analysis.own_lines import flame_of
from gpulse.model.stacks import CodeLine, Frame
from gpulse.monitor import stack_requests
from gpulse.monitor.presence import PresenceFile
from gpulse.store.runs import keep, keep_flame
from tests.unit.surfaces.web.asking import app_of, ask, hub_of

PID = os.getpid()
ADVICE = "58 s in train.py:84 compute_f1(…): vectorize it."
MAIN, METRIC = Frame("/home/ada/train.py", 12, "main"), Frame("/home/ada/train.py", 84, "compute_f1")
LOADER = Frame("/usr/lib/python3/site-packages/torch/utils/data/dataloader.py", 700, "__next__")
STACKS = [((MAIN, METRIC), 58.0, 1.0), ((MAIN, LOADER), 13.0, 0.0)]


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("GPULSE_RUNS", str(tmp_path / "runs"))


def kept(name: str = "a-1", **more: Any) -> str:
    """Keep a run and return its file."""
    start = f"2026-11-16T10:00:0{len(more)}Z"
    run = {"id": name, "start": start, "state": "ended", "command": "python train.py", "seconds": 300.0}
    path = keep({**run, "code_text": ["The GPU waited 71 of 300 s.", ADVICE], **more})
    assert path is not None
    return path


def test_a_run_is_listed_and_shown_with_its_lines_and_its_flame_graph() -> None:
    keep_flame(kept(), flame_of(STACKS).to_plain())
    app = app_of()
    (row,) = ask(app, "/api/runs").json["runs"]
    assert (row["id"], row["command"], row["seconds"], row["result"]) == ("a-1", "python train.py", 300.0, "ended")
    found = ask(app, "/api/run?run=a-1").json
    assert found["code"][1] == ADVICE
    assert ["command", "python train.py"] in found["facts"]
    assert "code" not in dict(found["facts"]), "shown once"
    metric, loader = found["flame"]["inner"]
    assert (found["flame"]["seconds"], metric["name"], metric["own"], metric["seconds"]) == (
        71.0,
        "train.py:84 compute_f1",
        True,
        58.0,
    )
    assert (loader["name"], loader["own"]) == ("torch/utils/data/dataloader.py:700 __next__", False)


def test_a_run_without_stacks_has_no_flame_graph_and_an_unknown_one_is_refused() -> None:
    kept()
    assert ask(app_of(), "/api/run").json["flame"] is None, "the last run, where none is named"
    assert ask(app_of(), "/api/run?run=none").status == 404
    assert ask(app_of(), "/api/run?run=").status == 422


def test_without_any_run_the_newest_is_none() -> None:
    answer = ask(app_of(), "/api/run").json
    assert (answer["title"][:11], answer["flame"], answer["code"]) == ("No runs yet", None, [])


def test_a_running_program_is_asked_and_answers_once() -> None:
    present = PresenceFile(PID)
    line = CodeLine(METRIC.file, 84, "compute_f1", 58.0, 1.0)
    present.write({"run": "r", "phase": "train", "seconds": 300.0, "code": [line._asdict()]})
    app = app_of()
    first = ask(app, f"/api/run?pid={PID}").json
    assert first["flame"] is None
    assert first["code"][0].startswith("The GPU waited 58 of 59 s; 58 s of it in train.py:84")
    assert present.path is not None
    made: list[int] = []

    def tree() -> dict[str, Any]:
        made.append(1)
        return flame_of(STACKS).to_plain()

    for _ in range(3):
        stack_requests.show_stacks(PID, os.path.dirname(present.path), tree)
    assert made == [1], "only when somebody asks"
    assert ask(app, f"/api/run?pid={PID}").json["flame"]["seconds"] == 71.0
    stack_requests.forget(PID, os.path.dirname(present.path))
    present.remove()
    assert os.listdir(os.path.dirname(present.path)) == []
    assert ask(app, f"/api/run?pid={PID}").status == 404


@pytest.mark.parametrize(("real", "commands"), [(False, True), (True, False)])
def test_nothing_is_shown_of_programs_where_they_are_hidden_or_not_of_this_machine(real: bool, commands: bool) -> None:
    kept()
    hub = hub_of(1, commands=commands)
    hub.real, hub.tells_programs = real, real and commands
    app = app_of(hub)
    answer = ask(app, "/api/runs").json
    assert answer["runs"] == []
    assert answer["note"]
    assert ask(app, "/api/run").json["title"] == answer["note"]
    assert ask(app, "/api/run?run=a-1").status == 404


def test_a_flame_graph_has_a_bounded_size_and_goes_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [((MAIN, Frame("/home/ada/train.py", at, "f")), 1.0 + at / 1e4, 0.0) for at in range(800)]
    plain = flame_of(many).to_plain()
    assert 500 <= len(plain["inner"]) <= 600
    assert plain["inner"][0]["name"] == "train.py:799 f", "the longest first"
    old = kept("old")
    keep_flame(old, plain)
    monkeypatch.setattr("gpulse.store.runs.MOST", 1)
    new = kept("new", host="box")
    assert os.listdir(tmp_path / "runs") == [os.path.basename(new)]
