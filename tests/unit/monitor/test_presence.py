"""What a running Monitor says of itself to other programs, and what a reader believes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.monitor import presence
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.presence import PresenceFile, Teller, presence_folders, presence_of, presences


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.communicate()


def test_a_state_is_read_back(environ: dict[str, str]) -> None:
    code = [{"file": "train.py", "line": 84, "function": "loss", "waited": 3.5, "computed": 0.5}]
    PresenceFile(os.getpid(), environ).write({"run": "r", "phase": "train", "step": 7, "rank": 2, "code": code})
    found = presence_of(os.getpid(), environ)
    assert found is not None
    assert (found.run, found.phase, found.step, found.rank, [*found.code]) == ("r", "train", 7, 2, code)
    assert os.getpid() in presences(environ)


def test_the_folder_and_the_file_are_private(environ: dict[str, str]) -> None:
    file = PresenceFile(os.getpid(), environ)
    file.write({})
    assert file.path is not None
    assert os.stat(os.path.dirname(file.path)).st_mode & 0o777 == 0o700
    assert os.stat(file.path).st_mode & 0o777 == 0o600


def test_a_removed_file_is_gone(environ: dict[str, str]) -> None:
    file = PresenceFile(os.getpid(), environ)
    file.write({})
    file.remove()
    assert os.getpid() not in presences(environ)
    assert os.listdir(os.path.join(environ["XDG_RUNTIME_DIR"], "gpulse")) == []


def test_the_file_of_a_process_that_has_ended_is_removed(
    environ: dict[str, str], other: subprocess.Popen[bytes]
) -> None:
    file = PresenceFile(other.pid, environ)
    file.write({"phase": "train"})
    assert presence_of(other.pid, environ) is not None
    other.communicate(b"\n")
    assert other.pid not in presences(environ)
    assert not os.path.exists(str(file.path))


def test_a_reused_pid_is_not_mistaken_for_the_program(environ: dict[str, str]) -> None:
    file = PresenceFile(os.getpid(), environ)
    file.write({})
    path = Path(str(file.path))
    path.write_text(json.dumps({**json.loads(path.read_text()), "started": 1}))
    assert presence_of(os.getpid(), environ) is None
    assert not path.exists()


def test_half_a_file_of_a_killed_writer_is_removed(environ: dict[str, str]) -> None:
    file = PresenceFile(os.getpid(), environ)
    left = Path(f"{file.path}.{2**22 + 1}.part")  # no process has such a PID
    left.write_text("{")
    strange = left.with_name("nobody.part")  # anybody can name a file so
    strange.write_text("{")
    presences(environ)
    assert not left.exists()
    assert strange.exists()


def test_a_folder_that_others_can_enter_is_not_trusted(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    PresenceFile(os.getpid(), environ).write({})
    os.chmod(os.path.join(environ["XDG_RUNTIME_DIR"], "gpulse"), 0o755)
    assert presence_of(os.getpid(), environ) is None


def test_a_link_is_not_followed(environ: dict[str, str], tmp_path: Path) -> None:
    file = PresenceFile(os.getpid(), environ)
    file.write({})
    path = Path(str(file.path))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert presence_of(os.getpid(), environ) is None


@pytest.mark.parametrize("content", ["", "[]", "null", "{", '{"pid": 1}', "[" * 60000])
def test_a_broken_file_is_ignored(environ: dict[str, str], content: str) -> None:
    file = PresenceFile(os.getpid(), environ)
    Path(str(file.path)).write_text(content)
    assert presence_of(os.getpid(), environ) is None


def test_texts_are_made_harmless_and_wrong_types_left_out(environ: dict[str, str]) -> None:
    wrong = {
        "phase": "a\x1b[31m" + "x" * 999,
        "step": "7",
        "data_wait": float("nan"),
        "rank": [],
        "code": [3, {"line": "x"}],
    }
    PresenceFile(os.getpid(), environ).write(wrong)
    found = presence_of(os.getpid(), environ)
    assert found is not None
    assert "\x1b" not in found.phase
    assert len(found.phase) < 250
    assert (found.step, found.data_wait, found.rank) == (None, None, None)
    assert found.code == ({"file": "", "function": "", "line": 0, "waited": 0, "computed": 0},)


def test_without_a_runtime_folder_the_other_place_is_used(tmp_path: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(tmp_path / "missing" / "deep")}
    file = PresenceFile(os.getpid(), environ)
    try:
        assert file.path is not None
        assert os.path.dirname(file.path) == presence_folders(environ)[1]
        file.write({"step": 3})
        assert presence_of(os.getpid(), environ) is not None
    finally:
        file.remove()


def test_a_teller_says_how_the_run_goes() -> None:
    ledger = Ledger(lambda: None, initial_step=100)
    teller = Teller(ledger, "r1")
    ledger.enter("train")
    for _ in range(4):
        ledger.step(1, 0)
    ledger.waited(0.5)
    told = teller.due(now=True)
    assert told is not None
    assert (told["run"], told["phase"], told["step"]) == ("r1", "train", 104)
    assert told["step_p50"] <= told["step_p95"] <= told["step_max"]
    assert teller.due() is None


@pytest.mark.parametrize(("user", "capabilities", "seen"), [(0, 0, True), (1000, 1 << 2, True), (1000, 1 << 19, False)])
def test_the_monitors_of_everybody_are_for_root_and_a_service_that_may_read_all_files(
    monkeypatch: pytest.MonkeyPatch, user: int, capabilities: int, seen: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(presence, "effective_capabilities", lambda: capabilities)
    monkeypatch.setattr(presence, "names", lambda folder: ["54321"] if folder == "/run/user" else [])
    monkeypatch.setattr(presence, "_owner", lambda folder: 54_321 if "54321" in folder else user)
    assert ("/run/user/54321/gpulse" in presence._folders({})) is seen
