"""A trace on request, by the real profiler of torch."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import gpulse
from gpulse.errors import GpulseError, UsageError
from gpulse.monitor import traces
from gpulse.monitor.arguments import signal_of
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.presence import PresenceFile
from gpulse.monitor.traces import StepTraces, TraceSignal
from gpulse.sinks import JsonlSink, TensorBoardSink

PID = os.getpid()


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    PresenceFile(PID).write({"run": "r"})
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


class Tracing:
    """A ledger with traces, whose writing can be waited for."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger(lambda: None)
        self.written: list[str] = []
        self.done = threading.Event()
        self.traces = StepTraces(
            "a-run", self.ledger, [JsonlSink(folder / "gpu.jsonl")], str(folder / "gpulse"), self._took
        )

    def _took(self, path: str) -> None:
        self.written.append(path)
        self.done.set()

    def steps(self, torch: Any, count: int) -> None:
        layer = torch.nn.Linear(8, 8)
        for _ in range(count):
            layer(torch.ones(4, 8)).sum().backward()
            self.ledger.step(1, 0)


def test_the_next_steps_are_traced_and_written_beside_the_run(tmp_path: Path, environ: dict[str, str]) -> None:
    torch = pytest.importorskip("torch")
    tracing = Tracing(tmp_path)
    request = traces.ask(PID, 3, environ)
    assert (request.taken, request.answer()) == (False, ("waiting", ""))
    tracing.traces.poll()
    assert request.taken
    tracing.steps(torch, 1)
    assert request.answer()[0] == "tracing"
    tracing.steps(torch, 6)
    assert tracing.done.wait(60)
    state, path = request.answer()
    assert (state, path) == ("done", tracing.written[0])
    assert path == str(tmp_path / "gpulse-a-run-step0.pt.trace.json.gz")
    assert os.stat(path).st_mode & 0o077 == 0
    names = [event.get("name", "") for event in json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"]]
    assert sorted({name for name in names if name.startswith("ProfilerStep#")}) == [
        f"ProfilerStep#{at}" for at in (2, 3, 4)
    ]
    assert any("addmm" in name for name in names)
    assert tracing.ledger.at_step == ()  # no step costs anything afterwards


def test_a_trace_is_written_to_the_folder_of_the_run_of_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    sink = TensorBoardSink(tmp_path / "runs")
    sink.open()
    made = StepTraces("a-run", Ledger(lambda: None), [sink], str(tmp_path), print)
    assert made._path() == str(tmp_path / "runs" / "gpulse" / "gpulse-a-run-step0.pt.trace.json.gz")
    sink.close()


def test_a_program_that_profiles_itself_goes_on(tmp_path: Path, environ: dict[str, str]) -> None:
    torch = pytest.importorskip("torch")
    tracing = Tracing(tmp_path)
    request = traces.ask(PID, 3, environ)
    tracing.traces.poll()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        tracing.steps(torch, 3)
    state, reason = request.answer()
    assert state == "failed"
    assert reason == "torch's profiler could not be used: the program is using it itself"
    assert tracing.ledger.at_step == ()


def test_a_trace_ends_with_the_program(tmp_path: Path, environ: dict[str, str]) -> None:
    torch = pytest.importorskip("torch")
    tracing = Tracing(tmp_path)
    traces.ask(PID, 100, environ)
    tracing.traces.poll()
    tracing.steps(torch, 3)
    tracing.traces.close()
    assert tracing.done.wait(60)
    assert [*(tmp_path / "gpulse").iterdir()] == [tmp_path / f"gpulse/{PID}.json"]  # no file of a request is left


def test_only_running_monitors_of_the_user_can_be_asked(environ: dict[str, str]) -> None:
    with pytest.raises(GpulseError, match=f"process 1 has no Monitor of yours.* These have: .*{PID}"):
        traces.ask(1, 3, environ)
    with pytest.raises(UsageError, match="0 is not a number of steps"):
        traces.ask(PID, 0, environ)


def test_a_request_can_be_withdrawn(environ: dict[str, str]) -> None:
    request = traces.ask(PID, 3, environ)
    request.withdraw()
    assert traces.take(PID, f"{environ['XDG_RUNTIME_DIR']}/gpulse") is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"id": 1, "steps": 2}',
        '{"id": "a", "steps": 99999, "time": 0}',
        '{"id": "a", "steps": 3, "time": 0}',
    ],
)
def test_a_broken_or_old_request_is_removed_and_ignored(environ: dict[str, str], tmp_path: Path, content: str) -> None:
    path = tmp_path / f"gpulse/{PID}.request.json"
    path.write_text(content)
    assert traces.take(PID, f"{environ['XDG_RUNTIME_DIR']}/gpulse") is None
    assert not path.exists()


@gpulse.testing.scripted(gpus=[{}])
def test_a_monitor_answers_a_request(tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    with gpulse.Monitor(interval=0.1) as monitor:
        request = traces.ask(PID, 2, environ)
        layer = torch.nn.Linear(8, 8)
        for _ in range(100_000):
            layer(torch.ones(4, 8)).sum().backward()
            monitor.step()
            if request.answer()[0] in ("done", "failed"):
                break
    state, path = request.answer() if request.answer()[1] else ("done", str(next(tmp_path.glob("*.pt.trace.json.gz"))))
    assert state == "done"
    assert Path(path).exists()


class Keeper:
    signaled = False


def test_a_signal_asks_for_a_trace_and_is_given_back() -> None:
    keeper: Any = Keeper()
    said: list[str] = []
    before, ledger = signal.getsignal(signal.SIGUSR2), Ledger(lambda: None)
    one = TraceSignal(signal.SIGUSR2, ledger, keeper, said.append)
    signal.raise_signal(signal.SIGUSR2)
    assert keeper.signaled
    other = TraceSignal(signal.SIGUSR2, Ledger(lambda: None), None, said.append)
    assert "has a handler of this program, which stays" in said.pop()
    other.close()
    assert signal.getsignal(signal.SIGUSR2) not in (signal.SIG_DFL, before)
    assert ledger.at_stop == (one.close,)
    one.close()
    assert signal.getsignal(signal.SIGUSR2) == before
    assert said == []


def test_a_rank_that_makes_no_traces_survives_the_signal() -> None:
    ours = TraceSignal(signal.SIGUSR1, Ledger(lambda: None), None, print)
    signal.raise_signal(signal.SIGUSR1)
    ours.close()


def test_outside_of_the_main_thread_no_handler_can_be_set() -> None:
    said: list[str] = []
    thread = threading.Thread(
        target=lambda: TraceSignal(signal.SIGUSR2, Ledger(lambda: None), None, said.append).close()
    )
    thread.start()
    thread.join(20)
    assert "not started in the main thread" in said[0]
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL


@pytest.mark.parametrize("given", ["SIGTERM", "9", 9, signal.SIGINT, 1.5, ""])
def test_a_signal_with_another_meaning_is_refused_before_the_training_starts(given: Any) -> None:
    with pytest.raises(UsageError, match="trace_signal="):
        gpulse.Monitor(trace_signal=given)


@pytest.mark.parametrize("given", ["SIGUSR2", "usr2", signal.SIGUSR2, int(signal.SIGUSR2)])
def test_a_signal_has_several_names(given: Any) -> None:
    assert signal_of(given) == signal.SIGUSR2
