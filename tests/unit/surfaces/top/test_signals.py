"""Signals, sent to real processes that are started here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpulse.surfaces.top import signals
from gpulse.surfaces.top.signals import SIGNALS, USUAL, Target, identify, send, signal_number, target

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=["handle", "number"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send through a handle of the kernel, and as where there is none."""
    if request.param == "number":
        monkeypatch.setattr(signals, "_hold", lambda pid: None)


def test_every_signal_exists_and_is_explained() -> None:
    ordinary = {each.name.removeprefix("SIG") for each in signal.Signals if each < signal.SIGRTMIN}
    assert {name for name, _ in SIGNALS} == ordinary - {"STKFLT"}, "the kernel never sends that one"
    numbers = [signal_number(name) for name, _ in SIGNALS]
    assert numbers == sorted(numbers)
    assert all(signal_number(name) == getattr(signal, f"SIG{name}") and meaning for name, meaning in SIGNALS)
    assert SIGNALS[USUAL][0] == "TERM"


def test_a_process_is_ended(child: subprocess.Popen[bytes]) -> None:
    assert send([target(child.pid)], "TERM") == [f"sent TERM to {child.pid}"]
    assert child.wait(60) == -signal.SIGTERM


def test_a_process_is_killed(child: subprocess.Popen[bytes]) -> None:
    assert send([target(child.pid)], "KILL") == [f"sent KILL to {child.pid}"]
    assert child.wait(60) == -signal.SIGKILL


def test_a_reused_number_gets_nothing(child: subprocess.Popen[bytes]) -> None:
    started = identify(child.pid)
    assert started is not None
    assert send([Target(child.pid, started - 1)], "KILL") == [f"{child.pid} is a different process now: not signaled"]
    assert child.poll() is None


def test_a_process_that_was_never_identified_gets_nothing(child: subprocess.Popen[bytes]) -> None:
    (sentence,) = send([Target(child.pid, None)], "KILL")
    assert sentence.endswith("not signaled")
    assert child.poll() is None


def test_nothing_is_sent_into_another_namespace(child: subprocess.Popen[bytes]) -> None:
    (sentence,) = send([target(child.pid)], "KILL", foreign=True)
    assert sentence == f"{child.pid} is outside this container: not signaled"
    assert child.poll() is None


def test_a_process_that_has_ended_is_said_to_have(child: subprocess.Popen[bytes]) -> None:
    chosen = target(child.pid)
    child.kill()
    child.wait()
    assert send([chosen], "TERM") == [f"{child.pid} has already ended"]
    assert identify(child.pid) is None


@pytest.mark.parametrize("pid", [1, 0, -1, -5])
def test_init_and_whole_groups_are_refused(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("sent"))
    (sentence,) = send([Target(pid, 1.0)], "KILL")
    assert sentence.endswith("not signaled")


def test_gpulse_does_not_end_itself() -> None:
    assert "gpulse itself" in send([target(os.getpid())], "TERM")[0]


def test_an_unknown_signal_is_refused(child: subprocess.Popen[bytes]) -> None:
    assert send([target(child.pid)], "RTMIN") == ["signal RTMIN is not supported"]
    assert child.poll() is None


def test_one_refusal_does_not_hide_the_rest(child: subprocess.Popen[bytes]) -> None:
    sentences = send([Target(1, 1.0), target(child.pid)], "TERM")
    assert len(sentences) == 2
    assert sentences[1] == f"sent TERM to {child.pid}"
    assert child.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(1, "Operation not permitted"), "belongs to another user: not permitted"),
        (ProcessLookupError(3, "No such process"), "has already ended"),
        (OSError(22, "Invalid argument"), "could not be signaled: Invalid argument"),
    ],
)
def test_errors_are_in_words(
    child: subprocess.Popen[bytes], error: OSError, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:  # the child is to be killed at the end
        patch.setattr(os, "kill", fail)
        patch.setattr(signal, "pidfd_send_signal", fail, raising=False)
        assert send([target(child.pid)], "TERM") == [f"{child.pid} {words}"]


def test_no_handle_is_left_open(child: subprocess.Popen[bytes]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    send([target(child.pid), Target(child.pid, 0.5), target(child.pid)], "CONT")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_name_with_brackets_does_not_move_the_start() -> None:
    code = "open('/proc/self/comm', 'w').write('a) S 1 (b'); print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        started = identify(process.pid)
        process.stdout.readline()
        assert identify(process.pid) == started is not None
        process.kill()
