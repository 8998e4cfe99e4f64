"""The stack of the process whose details are open."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.sources import py_spy
from gpulse.surfaces.top.feeds import LiveStack
from tests.unit.sources.programs import ended, in_place_of_py_spy, started

PATIENCE = 60.0


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = started(tmp_path)
    yield process
    ended(process)


def test_it_is_read_again_and_again_until_the_details_are_closed(program: subprocess.Popen[str]) -> None:
    read = threading.Semaphore(0)
    stack = LiveStack(read.release)
    stack.watch(program.pid)
    for _ in range(2):
        assert read.acquire(timeout=PATIENCE)
    assert stack.stacks[0].frames[-1].function == "deep"
    stack.watch(None)
    assert (stack.stacks, stack.problem) == ((), "")


def test_why_it_cannot_be_read_is_told_once(
    program: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_place_of_py_spy(monkeypatch, tmp_path, "echo 'Error: it is raining' >&2; exit 1")
    read = threading.Semaphore(0)
    stack = LiveStack(read.release)
    stack.watch(program.pid)
    assert read.acquire(timeout=PATIENCE)
    assert "it is raining" in stack.problem


def test_a_process_of_somebody_else_is_not_read(
    program: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def owner(pid: int) -> int:
        asked.set()
        return 4711

    monkeypatch.setattr(py_spy, "owner_of", owner)
    stack = LiveStack(lambda: None)
    stack.watch(program.pid)
    assert asked.wait(PATIENCE)
    stack.watch(None)
    assert (stack.stacks, stack.problem) == ((), "")
