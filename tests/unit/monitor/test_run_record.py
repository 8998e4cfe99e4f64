"""The record of a run: of a Monitor alone, of one inside `gpulse run`, and what git says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import gpulse
from gpulse.monitor import listener
from gpulse.monitor.run_record import RunRecord, _git_told, git_state, result
from gpulse.store.runs import kept_runs, run_named

GPUS = [{"name": "NVIDIA H100 80GB HBM3", "utilization": 90, "memory_used": 4 << 30}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GPULSE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("GPULSE_RUN", raising=False)
    monkeypatch.setattr(listener, "_TRIAL", 0.0)
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "runs")


def train(steps: int = 20, **options: object) -> gpulse.Monitor:
    with gpulse.testing.scripted(GPUS), gpulse.Monitor(interval=0.1, **options) as monitor:  # type: ignore[arg-type]
        for _ in monitor.batches(range(steps), items=4):
            pass
    return monitor


def test_a_monitor_keeps_its_run(folder: str) -> None:
    monitor = train()
    (run,) = kept_runs(folder)
    assert run.id == monitor.run
    assert run.part("throughput")["steps"] == 20
    assert run.part("throughput")["items"] == 80
    assert run.text("state") == "ended"
    assert result(run) == "ended"
    assert os.path.basename(sys.executable) in run.text("command") or "pytest" in run.text("command")


def test_a_trial_is_not_kept(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_TRIAL", 60.0)
    train()
    assert [*kept_runs(folder)] == []


def test_a_measurement_and_other_ranks_are_not_kept(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with gpulse.testing.scripted(GPUS), gpulse.measure("a", show=False):
        pass
    monkeypatch.setenv("RANK", "1")
    train()
    assert [*kept_runs(folder)] == []


def test_an_error_is_the_result(folder: str) -> None:
    with pytest.raises(ZeroDivisionError), gpulse.testing.scripted(GPUS), gpulse.Monitor():
        raise ZeroDivisionError
    assert result(run_named("last", folder)) == "ZeroDivisionError"


def test_a_monitor_inside_gpulse_run_adds_to_its_record(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RunRecord("20261116-000000-aa11", ["python", "train.py"], os.getpid(), time.monotonic())
    record.begin()
    monkeypatch.setenv("GPULSE_RUN", record.id)
    assert train().run == record.id
    (run,) = kept_runs(folder)
    assert run.text("command") == "python train.py"
    assert run.text("state") == "running"
    assert run.part("throughput")["steps"] == 20
    record.end(None, seconds=3.0, exit_code=1)
    (run,) = kept_runs(folder)
    assert (result(run), run.seconds, run.part("throughput")["steps"]) == ("exit 1", 3.0, 20)


def test_a_run_is_written_while_it_goes_on_so_that_a_kill_leaves_it(folder: str) -> None:
    written = threading.Event()
    with gpulse.testing.scripted(GPUS), gpulse.Monitor(interval=0.1) as monitor:
        monitor.step()
        deadline = time.monotonic() + 30
        while not any(run.list("gpus") for run in kept_runs(folder)) and time.monotonic() < deadline:
            written.wait(0.05)
        run = run_named("last", folder)
        assert result(run) == "running"
        assert run.list("gpus")[0]["name"] == "NVIDIA H100 80GB HBM3"
        assert run.seconds is None
    assert result(run_named("last", folder)) == "ended"


def test_a_continued_run_is_another_entry(folder: str) -> None:
    train(run="mine")
    train(run="mine")
    assert [run.id for run in kept_runs(folder)] == ["mine.2", "mine"]


def test_a_folder_that_cannot_be_written_changes_nothing(
    folder: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPULSE_RUNS", "/proc/nowhere")
    train()
    assert capfd.readouterr().err == ""


# --- git


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)


def test_commit_branch_and_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(str(tmp_path)) is None
    git("init", "-q", "-b", "main")
    assert git_state(str(tmp_path)) is None  # no commit yet
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "one")
    found = git_state(str(tmp_path))
    assert found is not None
    assert (len(found["commit"]), found["branch"], found["dirty"]) == (40, "main", False)
    (tmp_path / "b").write_text("untracked files are no change")
    assert git_state(str(tmp_path)) == found
    (tmp_path / "a").write_text("2")
    assert git_state(str(tmp_path)) == {**found, "dirty": True}


def test_what_git_says_without_a_branch() -> None:
    told = "# branch.oid 1234\n# branch.head (detached)\n1 .M N... 100644 100644 100644 1 2 a\n"
    assert _git_told(told) == {"commit": "1234", "branch": None, "dirty": True}
    assert _git_told("") is None
