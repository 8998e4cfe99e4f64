"""What a monitor shows while its program runs, and leaves behind when the program is killed."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path

import pytest

from gpulse.monitor.presence import presence_of, presences
from gpulse.store.recording import read_recording
from tests.e2e.programs import DEMO, Program, agent, agents, machine, on, outlived, until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

TRAINING = """
m = gpulse.Monitor(interval=0.1, run="a-run", initial_step=40).start()
with m.phase("train"):
    for _ in range(3):
        m.step()
        m.waited(0.1)
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_another_program_sees_how_a_run_goes_until_it_ends(tmp_path: Path, mode: str) -> None:
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path)}
    with Program(TRAINING.replace("interval=0.1", f"interval=0.1, mode={mode!r}"), tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        found = presences(environ)[program.pid]
        assert (found.run, found.phase, found.step) == ("a-run", "train", 43)
        program.go()
        assert program.end().code == 0
    assert os.listdir(tmp_path / "gpulse") == []


def test_the_agent_removes_the_file_of_a_killed_program(tmp_path: Path) -> None:
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path)}
    with Program(TRAINING, tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        with outlived(agent(program.pid)) as wait:
            program.signal(signal.SIGKILL)
            wait()
    assert os.listdir(tmp_path / "gpulse") == []


# --- a program that is killed

KILLED = """
m = gpulse.Monitor(["csv:gpu.csv", "jsonl:gpu.jsonl"], interval=0.1, report=True, run="a-run").start()
until(lambda: m.latest)
{handler}
with m.phase("warm up"):
    time.sleep(0.2)
with m.phase("train"):
    for _ in range(7):
        m.step()
    until(lambda: "train" in m.summary().to_plain()["phases"][-1]["name"] and m.summary().phase("train").samples)
    print("ready", flush=True)
    sys.stdin.readline()
    {end}
"""
STATED = "in phase train, at about step 7."


def killed(folder: Path, number: signal.Signals | None, end: str = "", handler: str = "", group: bool = False) -> str:
    """Run a program to its violent end and return its stderr, which the agent completes."""
    environ = on(machine(2), folder, XDG_RUNTIME_DIR=str(folder))
    with Program(KILLED.format(end=end, handler=handler), folder, environ) as program:
        program.line()
        until(lambda: (found := presence_of(program.pid, environ)) is not None and found.step == 7)
        with outlived(agent(program.pid)) as wait:
            if number is None:
                program.go()
            else:
                program.signal(number, group)
            program.end()
            wait()
        assert os.listdir(folder / "gpulse") == []
        return program.err


def last_row(folder: Path) -> dict[str, str]:
    with (folder / "gpu.csv").open(newline="") as lines:
        return [*csv.DictReader(lines, strict=True)][-1]


@pytest.mark.parametrize("group", [False, True], ids=["alone", "with its group"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_killed_program_has_a_report_and_its_last_sample(tmp_path: Path, number: signal.Signals, group: bool) -> None:
    err = killed(tmp_path, number, group=group)
    first, headline, *rest = err.splitlines()
    assert first == f"gpulse: the program did not finish (ended by {number.name}) {STATED}"
    assert "7 steps" in headline
    assert any(line.split()[:2] == ["train", "1"] for line in rest)
    row = last_row(tmp_path)
    assert (row["run"], row["step"], row["phase"], row["gpu1/temperature"]) == ("a-run", "7", "train", "41")
    lines = (tmp_path / "gpu.jsonl").read_text().splitlines()
    (mark,) = json.loads(lines[-1])["marks"]
    assert (mark["name"], mark["value"]) == ("ended", f"ended by {number.name}")
    assert len([*read_recording(str(tmp_path / "gpu.jsonl"))]) == len(lines)


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os._exit(3)", "exit 3 without stopping the monitor, as os._exit does"),
        ("import ctypes; ctypes.string_at(0)", "ended by SIGSEGV"),
    ],
)
def test_an_end_that_python_does_not_see_is_told(tmp_path: Path, end: str, how: str) -> None:
    no_core = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    assert (
        killed(tmp_path, None, end, no_core).splitlines()[0] == f"gpulse: the program did not finish ({how}) {STATED}"
    )


def test_os_exit_in_the_middle_of_a_sample_of_the_stacks_hangs_nothing_and_leaves_whole_files(tmp_path: Path) -> None:
    held = """
inside = threading.Event()
def exit_within_a_sample():
    sys._current_frames = lambda: (inside.set(), threading.Event().wait())
    until(inside.is_set)
    os._exit(3)
"""
    err = killed(tmp_path, None, "exit_within_a_sample()", held)
    how = "exit 3 without stopping the monitor, as os._exit does"
    assert err.splitlines()[0] == f"gpulse: the program did not finish ({how}) {STATED}"
    assert (last_row(tmp_path)["step"], last_row(tmp_path)["phase"]) == ("7", "train")
    lines = (tmp_path / "gpu.jsonl").read_text().splitlines()
    assert [mark["value"] for mark in json.loads(lines[-1])["marks"]] == [how]
    assert len([*read_recording(str(tmp_path / "gpu.jsonl"))]) == len(lines)


@pytest.mark.parametrize(
    ("number", "end", "handler"),
    [
        (signal.SIGTERM, "", "signal.signal(15, lambda *_: sys.exit(42))"),
        (None, "sys.exit(7)", ""),
        (None, "raise ValueError('boom')", ""),
    ],
    ids=["SIGTERM with a handler", "sys.exit", "exception"],
)
def test_a_program_that_ends_by_itself_has_one_report_of_its_own(
    tmp_path: Path, number: signal.Signals | None, end: str, handler: str
) -> None:
    err = killed(tmp_path, number, end, handler)
    assert "did not finish" not in err
    assert sum(line.startswith("gpulse: ") for line in err.splitlines()) == 1


def test_a_program_that_becomes_another_is_not_taken_for_dead(tmp_path: Path) -> None:
    err = killed(tmp_path, None, "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1.5)'])")
    assert err == ""


def test_a_scheduler_that_signals_every_process_still_gets_the_report(tmp_path: Path) -> None:
    environ = on(machine(1), tmp_path, XDG_RUNTIME_DIR=str(tmp_path))
    with Program(KILLED.format(end="", handler=""), tmp_path, environ) as program:
        program.line()
        with outlived(watcher := agent(program.pid)) as wait:
            for pid in (watcher, program.pid):
                os.kill(pid, signal.SIGTERM)
            program.end()
            wait()
        assert "did not finish (ended by SIGTERM)" in program.err


def test_everything_killed_at_once_leaves_whole_files_and_nothing_else(tmp_path: Path) -> None:
    environ = on(machine(1), tmp_path, XDG_RUNTIME_DIR=str(tmp_path))
    with Program(KILLED.format(end="", handler=""), tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        until(lambda: ",train," in (tmp_path / "gpu.csv").read_text())
        with outlived(watcher := agent(program.pid)) as wait:
            for pid in (watcher, program.pid):
                os.kill(pid, signal.SIGKILL)
            program.end()
            wait()
        assert program.err == ""
        assert agents(program.pid) == []
    assert program.pid not in presences(environ)
    assert os.listdir(tmp_path / "gpulse") == []  # the reader has removed it
    assert last_row(tmp_path)["phase"] == "train"
    assert [*read_recording(str(tmp_path / "gpu.jsonl"))]


def test_without_a_report_a_killed_program_prints_nothing(tmp_path: Path) -> None:
    code = KILLED.format(end="", handler="").replace("report=True", "report=False")
    with Program(code, tmp_path, on(machine(1), tmp_path)) as program:
        program.line()
        with outlived(agent(program.pid)) as wait:
            program.signal(signal.SIGKILL)
            program.end()
            wait()
        assert program.err == ""
    assert json.loads((tmp_path / "gpu.jsonl").read_text().splitlines()[-1])["marks"][0]["value"] == "ended by SIGKILL"
