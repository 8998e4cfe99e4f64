"""Nothing that goes wrong in a Monitor reaches the program, and nothing of it goes on afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import gpulse
from gpulse.monitor import link, process
from gpulse.monitor.link import ThreadAgent
from gpulse.monitor.messages import Request
from gpulse.monitor.monitor import Monitor
from gpulse.sinks import CallableSink, Sink

PATIENCE = 20.0


class Foreign:
    """A sink that does not inherit from ours, and has only what it must have."""

    def __init__(self) -> None:
        self.samples: list[Any] = []
        self.written = threading.Event()

    def open(self) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

    def write(self, sample: Any) -> None:
        self.samples.append(sample)
        self.written.set()


def test_a_sink_of_another_package_needs_no_name() -> None:
    sink: Any = Foreign()
    with Monitor(sink, source="demo", mode="thread", interval=0.1) as monitor:
        assert sink.written.wait(PATIENCE)
        assert "sinks: Foreign" in repr(monitor)
    assert monitor.errors == 0


def test_a_sink_of_another_package_that_cannot_be_opened_is_told_by_its_class(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Broken(Foreign):
        def open(self) -> None:
            raise OSError("no server")

    sink: Any = Broken()
    Monitor(sink, source="demo", mode="thread").start().stop()
    assert "Broken: no server (this program continues without this sink)." in capsys.readouterr().err


def test_a_current_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with Monitor(source="demo", mode="thread", memory_snapshot=True) as monitor:
        assert monitor.samples
    assert "could not be started" in capsys.readouterr().err


def test_a_rank_that_does_not_sample_starts_without_threads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(process, "local_rank", lambda environ: 1)
    monkeypatch.setattr(threading.Thread, "start", start)
    with Monitor(source="demo") as monitor:
        monitor.step()
    assert capsys.readouterr().err == (
        "gpulse: sampling could not be started (can't start new thread); this program continues without it.\n"
    )


class Tensor:
    """A number that is not one of Python's, as in a checkpoint."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


def test_tensors_become_numbers_at_once() -> None:
    monitor = Monitor(source="demo", mode="thread")
    step: Any = Tensor(40)
    monitor.resume(step)
    with monitor:
        monitor.step(items=step, tokens=step)
        assert monitor.ledger is not None
        rhythm = monitor.ledger.rhythm
        assert (rhythm.reached, rhythm.items, rhythm.tokens) == (41, 40.0, 40.0)
        monitor.resume(step)
        assert rhythm.reached == 40


class Interrupted(Sink):
    """A sink that is slow to close."""

    name = "slow"

    def __init__(self) -> None:
        self.closed = threading.Event()

    def write(self, sample: object) -> None: ...

    def close(self) -> None:
        self.closed.set()


def test_ctrl_c_while_it_stops_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Interrupted()
    monitor = Monitor(sink, source="demo", mode="thread").start()
    ended = monitor._listener
    assert ended is not None

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ended, "stop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        monitor.stop()
    assert sink.closed.wait(PATIENCE)
    assert ended._over.wait(PATIENCE)
    assert not monitor.samples


HANDLED = """
import os, signal, gpulse
from gpulse.monitor import windows

begin = windows.Phase.begin

def preempted(*_):
    monitor.stop()

def signaled(self, window):  # while the ledger is locked
    os.kill(os.getpid(), signal.SIGTERM)
    begin(self, window)

signal.signal(signal.SIGTERM, preempted)
monitor = gpulse.Monitor(source="demo", mode="thread", stacks=False).start()
windows.Phase.begin = signaled
with monitor.phase("train"):
    pass
print("done")
"""


def test_a_handler_of_the_program_may_stop_it_at_any_time() -> None:
    source = Path(gpulse.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", HANDLED],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_no_command_is_written_to_a_descriptor_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = ThreadAgent(Request(pid=os.getpid(), source="demo", interval=60.0))
    late: list[threading.Thread] = []
    close = os.close

    def closing(handle: int) -> None:
        if not late and handle == number:
            late.append(threading.Thread(target=agent.tell, args=("sample",)))
            late[0].start()
            late[0].join(0.05)  # the program runs meanwhile, and may open a file of this number
            assert handle != agent._to
            assert late[0].is_alive()
        close(handle)

    number = agent._to
    monkeypatch.setattr(os, "close", closing)
    agent.end()
    late[0].join(PATIENCE)


def test_a_recording_that_has_ended_is_not_played_again(tmp_path: Path) -> None:
    from gpulse.recordings.demo import write_recording

    write_recording(str(tmp_path / "short.ndjson"), 1.7e9, seconds=2.0)
    times: list[float] = []
    sink = CallableSink(lambda values, step, time: times.append(time))
    with Monitor(sink, source=f"replay:{tmp_path / 'short.ndjson'}", interval=0.1, mode="thread") as monitor:
        assert monitor._listener is not None
        assert monitor._listener._over.wait(PATIENCE)
    assert times == sorted(times)
    assert monitor.errors == 1  # that it has ended


def test_a_stop_does_not_wait_for_the_next_try_of_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead(ThreadAgent):
        def _run(self) -> None:
            self.over = True
            self._messages.put(None)

    monkeypatch.setattr(link, "ThreadAgent", Dead)
    monitor = Monitor(source="demo", mode="thread").start()
    heard = monitor._listener
    assert heard is not None
    heard.link.stop()
    assert heard._over.wait(PATIENCE)
    monitor.stop()


class Hostile:
    """A stream of the program that takes nothing, and says so in its own way."""

    def write(self, text: str) -> int:
        raise RuntimeError("the widget is gone")

    def flush(self) -> None: ...


def test_a_stream_of_the_program_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    stream: Any = Hostile()
    monkeypatch.setattr(sys, "stderr", stream)
    with Monitor("csv:/proc/nowhere/x.csv", source="demo", mode="thread", report=True), gpulse.measure("x"):
        pass
    Monitor(source="demo", mode="thread", report=True, stderr=stream).start().stop()
