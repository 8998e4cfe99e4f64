"""Watching a real process on the simulated machine."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator

import pytest

from gpulse.model.event import Event
from gpulse.monitor.messages import AgentSample, Request
from gpulse.supervision.watch import CommandWatch

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that runs."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def test_samples_are_recorded_until_it_is_stopped(pid: int) -> None:
    snaps: list[AgentSample] = []
    some = threading.Event()

    def record(snap: AgentSample) -> None:
        snaps.append(snap)
        some.set()

    watch = CommandWatch(Request(pid=pid, interval=0.1, source="demo"), record)
    assert some.wait(60)
    summary = watch.stop()
    assert (summary.gpus, watch.problem) == ((), "")  # nobody there is the command
    assert summary.samples >= 1
    assert len(snaps[0].snapshot.gpus) == 8


def test_a_source_that_fails_is_a_sentence(pid: int) -> None:
    watch = CommandWatch(Request(pid=pid, source="nothing"))
    assert watch._over.wait(60)
    assert watch.stop().samples == 0
    assert "nothing" in watch.problem


def test_a_recorder_that_fails_is_a_sentence(pid: int) -> None:
    def record(snap: AgentSample) -> None:
        raise OSError("the disk is full")

    watch = CommandWatch(Request(pid=pid, interval=0.1, source="demo"), record)
    assert watch._over.wait(60)
    watch.stop()
    assert watch.problem == "the disk is full"


def test_no_room_for_a_thread_is_a_sentence(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    watch = CommandWatch(Request(pid=pid, source="demo"))
    assert watch.stop().samples == 0
    assert watch.problem == "can't start new thread."


def test_a_command_that_hangs_is_told_at_once_and_others_are_not(pid: int) -> None:
    told: list[str] = []
    watch = CommandWatch(Request(pid=pid, interval=60.0, source="demo"), tell=told.append)

    def alert(kind: str, uuid: str, state: str = "fire", **values: str) -> Event:
        return Event(0.0, kind, ("0",), uuids=(uuid,), values=values, rule="r", alert=state)

    hang = {"verdict": "hang", "stacks": "42: all_reduce train.py:84"}
    events = [
        alert("verdict", "GPU-0", **hang),
        alert("verdict", "GPU-0", "clear", **hang),
        alert("verdict", "GPU-1", **hang),
        alert("verdict", "GPU-0", verdict="input_bound"),
    ]
    watch._tell_hangs(events, {"GPU-0"})
    watch.stop()
    (text,) = told
    assert "all_reduce train.py:84" in text
