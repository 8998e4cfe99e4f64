"""Watching a real process on the simulated machine."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.monitor.request import AgentSample, Request
from gpulse.supervision.watch import CommandWatch

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")


@pytest.fixture
def pid() -> Iterator[int]:
    """A process that runs."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def seen(*processes: tuple[int, float | None], problems: tuple[Problem, ...] = ()) -> AgentSample:
    listed = tuple(
        Process({"pid": pid} if memory is None else {"pid": pid, "memory_used": memory}) for pid, memory in processes
    )
    gpus = (Gpu({"uuid": "GPU-0", "index": 0}, processes=listed), Gpu({"uuid": "GPU-1", "index": 1}))
    return AgentSample(1.0, Snapshot(1.0, gpus, problems=problems), None)


def unstarted(pid: int) -> CommandWatch:
    """A watch on a source that does not exist: it hears only what a test tells it."""
    watch = CommandWatch(Request(pid=pid, source="nothing"))
    assert watch._over.wait(10)
    watch.problem = ""
    return watch


def test_samples_are_recorded_until_it_is_stopped(pid: int) -> None:
    snaps: list[AgentSample] = []
    some = threading.Event()

    def record(snap: AgentSample) -> None:
        snaps.append(snap)
        some.set()

    watch = CommandWatch(Request(pid=pid, interval=0.1, source="demo"), record)
    assert some.wait(10)
    summary = watch.stop()
    assert (summary.gpus, watch.used, watch.problem) == ((), {}, "")  # nobody there is the command
    assert summary.samples >= 1
    assert len(snaps[0].snapshot.gpus) == 8


def test_the_most_memory_of_the_tree_is_kept(pid: int) -> None:
    watch = unstarted(os.getpid())  # of which the process is a child
    for snap in (seen((pid, 2.0), (os.getpid(), 3.0), (1, 50.0)), seen((pid, 4.0)), seen((pid, None)), seen()):
        watch._note_owners(snap)
    assert watch.used == {"GPU-0": 5.0}


def test_memory_that_is_not_told_is_not_zero(pid: int) -> None:
    watch = unstarted(pid)
    watch._note_owners(seen((pid, None)))
    assert watch.used == {"GPU-0": None}
    watch._note_owners(seen((pid, 0.0)))
    assert watch.used == {"GPU-0": 0.0}


def test_a_source_that_fails_is_a_sentence(pid: int) -> None:
    watch = CommandWatch(Request(pid=pid, source="nothing"))
    assert watch._over.wait(10)
    assert watch.stop().samples == 0
    assert "nothing" in watch.problem


def test_a_recorder_that_fails_is_a_sentence(pid: int) -> None:
    def record(snap: AgentSample) -> None:
        raise OSError("the disk is full")

    watch = CommandWatch(Request(pid=pid, interval=0.1, source="demo"), record)
    assert watch._over.wait(10)
    watch.stop()
    assert watch.problem == "the disk is full"


def test_no_room_for_a_thread_is_a_sentence(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    watch = CommandWatch(Request(pid=pid, source="demo"))
    assert watch.stop().samples == 0
    assert watch.problem == "can't start new thread."
