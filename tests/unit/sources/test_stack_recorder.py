"""Stacks over time: from py-spy's trace, and of programs that run."""

from __future__ import annotations

import math
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.stacks import Stack
from gpulse.sources import stack_recorder
from gpulse.sources.stack_recorder import STEP, StackRecorder, affordable, moments_of
from tests.unit.sources.programs import ended, in_place_of_py_spy, started

PATIENCE = 60.0
ENDLESS = """
import threading, time
def spin():
    while True:
        sum(range(1000))
def rest(event=threading.Event()):
    event.wait()
threading.Thread(target=rest, name="other", daemon=True).start()
print("ready", flush=True)
spin()
"""


def event(
    kind: str, name: str, at: float, *, thread: int = 1, file: str = "/x/train.py", line: int = 1
) -> dict[str, Any]:
    """One event as py-spy writes it; `at` in seconds."""
    return {"ph": kind, "name": name, "ts": at * 1e6, "pid": 9, "tid": thread, "args": {"filename": file, "line": line}}


def trace(*events: dict[str, Any], label: str = "thread (9): MainThread", thread: int = 1) -> list[dict[str, Any]]:
    """A trace of one thread with its label, which lasts from its first event to its last."""
    first, last = events[0]["ts"] / 1e6, events[-1]["ts"] / 1e6
    begin = event("B", label, first, file="", line=0, thread=thread)
    return [begin, *events, event("E", label, last, file="", line=0, thread=thread)]


def seconds_by_function(moments: list[list[Stack]], role: str = "main") -> dict[str, float]:
    found: dict[str, float] = {}
    for stack in (stack for moment in moments for stack in moment if stack.role == role):
        found[stack.frames[-1].function] = found.get(stack.frames[-1].function, 0.0) + stack.seconds
    return {name: round(seconds, 2) for name, seconds in found.items()}


def test_a_stack_lasts_until_the_next_sample() -> None:
    events = trace(
        event("B", "<module>", 0.1),
        event("B", "load", 0.1, line=3),
        event("E", "load", 1.1, line=3),
        event("B", "step", 1.1, line=4),
        event("E", "step", 1.6, line=4),
        event("E", "<module>", 1.6),
    )
    moments = [*moments_of(events, 100.0, "main")]
    assert seconds_by_function(moments) == {"load": 1.0, "step": 0.5}
    assert moments[0][0].time == pytest.approx(100.1 + STEP / 2)
    assert moments[-1][0].time == pytest.approx(101.6 - STEP / 2)
    assert moments[0][0].frames[-1] == ("/x/train.py", 3, "load", "")


def test_threads_of_one_moment_belong_together() -> None:
    main = trace(event("B", "train", 0.0), event("E", "train", 1.0))
    other = trace(
        event("B", "feed", 0.0, thread=2), event("E", "feed", 1.0, thread=2), label="thread (11): feeder", thread=2
    )
    moments = [*moments_of([*main, *other], 0.0, "main")]
    assert [(stack.role, stack.thread) for stack in moments[5]] == [("main", "MainThread"), ("thread", "feeder")]
    assert [(stack.role, stack.thread) for stack in next(moments_of([*main, *other], 0.0, "worker"))] == [
        ("worker", "MainThread")
    ]


@pytest.mark.parametrize("label", ["thread (9)", "thread (0x7F00)"])
def test_the_main_thread_where_threads_have_no_names(label: str) -> None:
    events = trace(event("B", "<module>", 0.0), event("E", "<module>", 1.0), label=label)
    assert seconds_by_function([*moments_of(events, 0.0, "main")]) == {"<module>": 1.0}


EVENTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "ph": st.sampled_from(["B", "E", "X"]),
            "name": st.text(max_size=8) | st.just("thread (1): MainThread") | st.integers(),
            "ts": st.integers(0, 10**6) | st.text(max_size=3) | st.floats(0, 1e6),
            "pid": st.integers(0, 5) | st.none(),
            "tid": st.integers(0, 3) | st.none(),
            "args": st.dictionaries(st.sampled_from(["filename", "line"]), st.integers() | st.text(max_size=5))
            | st.none(),
        },
    )
    | st.integers(),
    max_size=30,
)


@given(EVENTS)
def test_whatever_is_in_a_trace_is_read(events: list[Any]) -> None:
    for moment in moments_of(events, 0.0, "main"):
        assert all(stack.frames and stack.seconds == STEP for stack in moment)


# --- programs that run


class Taken:
    """What a recorder told."""

    def __init__(self) -> None:
        self.moments: list[list[Stack]] = []
        self.some = threading.Event()
        self.over = threading.Event()

    def __call__(self, pid: int, moments: list[list[Stack]], until: float) -> None:
        self.moments += moments
        if moments:
            self.some.set()
        if until == math.inf:
            self.over.set()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = started(tmp_path, ENDLESS)
    yield process
    ended(process)


def test_a_program_is_read_until_told_to_stop(program: subprocess.Popen[str]) -> None:
    taken = Taken()
    recorder = StackRecorder(taken)
    assert recorder.follow(program.pid)
    assert not recorder.follow(program.pid)
    assert taken.some.wait(PATIENCE)
    recorder.stop()
    assert not recorder.problem
    assert taken.over.is_set()
    assert set(seconds_by_function(taken.moments)) == {"spin"}
    assert any(stack.thread == "other" for moment in taken.moments for stack in moment)
    assert program.poll() is None


def test_a_program_that_ends_is_no_problem(program: subprocess.Popen[str]) -> None:
    taken = Taken()
    recorder = StackRecorder(taken)
    recorder.follow(program.pid)
    assert taken.some.wait(PATIENCE)
    ended(program)
    assert taken.over.wait(PATIENCE)
    recorder.stop()
    assert not recorder.problem


def test_after_a_while_there_are_pauses_between_the_pieces(
    program: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_recorder, "_ALL", 0.0)
    monkeypatch.setattr(stack_recorder, "_PAUSES", (600.0, 600.0))
    taken, paused = Taken(), threading.Event()

    def take(pid: int, moments: list[list[Stack]], until: float) -> None:
        taken(pid, moments, until)
        if time.time() + 500 < until < math.inf:  # until then nothing will be known
            paused.set()

    recorder = StackRecorder(take)
    recorder.follow(program.pid)
    assert paused.wait(PATIENCE)
    recorder.stop()
    assert taken.over.is_set()
    assert taken.moments


@pytest.mark.parametrize(
    ("rate", "used", "expected"), [(50, 0.05, 50), (50, 0.5, 10), (50, 0.025, 100), (50, 0.0, 200), (200, 1.0, 10)]
)
def test_a_program_with_many_threads_is_read_less_often(rate: float, used: float, expected: float) -> None:
    assert affordable(rate, used) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -9 $$", "ended by signal 9"),
        ("echo 'Permission Denied' >&2; exit 1", "cannot be read"),
        ("echo 'Error: Failed to find python version from target process' >&2; exit 1", "is not a Python program"),
    ],
)
def test_a_py_spy_that_fails_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: subprocess.Popen[str], script: str, words: str
) -> None:
    in_place_of_py_spy(monkeypatch, tmp_path, script)
    taken = Taken()
    recorder = StackRecorder(taken)
    recorder.follow(program.pid)
    assert taken.over.wait(PATIENCE)
    recorder.stop()
    assert words in recorder.problem
    assert program.poll() is None


def test_what_fails_on_a_worker_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: subprocess.Popen[str]
) -> None:
    in_place_of_py_spy(monkeypatch, tmp_path, "exit 7")
    taken = Taken()
    recorder = StackRecorder(taken)
    recorder.follow(program.pid, "worker")
    assert taken.over.wait(PATIENCE)
    recorder.stop()
    assert (recorder.problem, "exit code 7" in recorder.worker_problem) == ("", True)


def test_a_py_spy_that_hangs_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: subprocess.Popen[str]
) -> None:
    in_place_of_py_spy(monkeypatch, tmp_path, "trap '' INT; exec sleep 60")
    taken = Taken()
    recorder = StackRecorder(taken)
    recorder.follow(program.pid)
    recorder.stop()
    assert taken.over.wait(PATIENCE)
    assert not taken.moments
