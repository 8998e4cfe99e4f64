"""Warnings on the terminals of the owner: only on those that allow it."""

from __future__ import annotations

import os
import pty
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.analysis.reclaim import Holding, ReclaimPolicy, ReclaimStep
from gpulse.delivery.reclaim import ReclaimDesk, write_to
from tests.unit.analysis.alerts.machines import GIB, process
from tests.unit.delivery.servers import server

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    ours, theirs = pty.openpty()
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def test_only_a_terminal_that_allows_messages_is_written_to(terminal: tuple[int, str], tmp_path: Path) -> None:
    ours, path = terminal
    folder, name = os.path.split(path)
    (tmp_path / "file").write_text("")
    os.chmod(path, 0o600)  # mesg n
    assert f"terminal {name}" not in list(write_to(ME, "hello", folder))
    os.chmod(path, 0o620)
    assert f"terminal {name}" in list(write_to(ME, "hello\nthere", folder))
    assert b"hello\r\nthere" in os.read(ours, 200).replace(b"\r\r", b"\r")
    assert list(write_to(ME, "hello", str(tmp_path))) == []  # no terminal
    assert list(write_to("nobody-of-that-name", "hello", folder)) == []


def test_an_owner_who_cannot_be_reached_is_not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    step = ReclaimStep("warn", Holding("GPU-0", "0", process(held=4 * GIB), 7.0, 1.0), idle=7200.0)
    done, line, _ = ReclaimDesk({"terminal": False}, ReclaimPolicy()).tell(step, 1_700_000_000.0)
    assert (done, "nobody could be reached" in line) == (False, True)
    with server() as taken:
        desk = ReclaimDesk({"terminal": False, "webhook": taken.url}, ReclaimPolicy(terminate=True))
        done, line, event = desk.tell(step, 1_700_000_000.0)
    assert done
    assert event is not None
    assert event.values["idle"] == 7200.0
    assert "ada's python (pid 42) holds 4.0 GiB on GPU 0" in taken.bodies[0]["text"]
    assert "SECRET" not in line
