"""Stacks as people see them: `gpulse stacks`, and the lines of code under `gpulse why PID` and at the end of `gpulse run`."""

from __future__ import annotations

import glob
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.model.stacks import CodeLine
from gpulse.monitor.presence import PresenceFile
from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.unit.sources.programs import ended, started

PATIENCE = 120.0
BUSY = """
import os, sys, time
def slow_metric():
    for _ in range(200000):
        pass
def wait_in_line():
    while not os.path.exists(sys.argv[1]):
        slow_metric()
print("ready", flush=True)
wait_in_line()
"""
PARENT = """
import multiprocessing, sys, threading
def child(queue):
    queue.put(1)
    threading.Event().wait()
def main():
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    worker = context.Process(target=child, args=(queue,), daemon=True)
    worker.start()
    queue.get()
    print("ready", flush=True)
    worker.join()
if __name__ == "__main__":
    main()
"""
PYTHONS = [
    path
    for place in ("~/.pyenv/versions/3.1[0-9]*/bin/python3", "/usr/bin/python3.1[0-9]", "/usr/local/bin/python3.1[0-9]")
    for path in sorted(glob.glob(os.path.expanduser(place)))
]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environment(Scenario.load("h200-busy"), tmp_path / "machine", NO_COLOR="1")


def gpulse(environ: dict[str, str], *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", *words],
        capture_output=True, text=True, check=False, timeout=PATIENCE, env=environ,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = started(tmp_path)
    yield process
    ended(process)


def test_the_stacks_of_a_process(environ: dict[str, str], program: subprocess.Popen[str], tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    done = gpulse(environ, "stacks", str(program.pid))
    assert done.stdout.splitlines() == [
        f"{program.pid}  {sys.executable} {file}",
        "MainThread",
        f"  deep {file}:5",
        f"  run_loop {file}:8",
        f"  <module> {file}:9",
    ]
    plain = json.loads(gpulse(environ, "stacks", str(program.pid), "--json").stdout)
    (process,) = plain["processes"]
    assert (plain["schema"], process["pid"], process["threads"][0]["main"]) == (1, program.pid, True)
    assert process["threads"][0]["frames"][0] == {"file": str(file), "line": 5, "function": "deep"}


def test_native_frames_only_when_asked(environ: dict[str, str], program: subprocess.Popen[str]) -> None:
    assert ".so" not in gpulse(environ, "stacks", str(program.pid)).stdout
    assert ".so" in gpulse(environ, "stacks", str(program.pid), "--native").stdout


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_are_read_when_asked(environ: dict[str, str], tmp_path: Path, method: str) -> None:
    file = tmp_path / "parent.py"
    file.write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(file), method], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert f"child {file}" not in gpulse(environ, "stacks", str(process.pid)).stdout
        done = gpulse(environ, "stacks", str(process.pid), "--children")
        assert f"child {file}" in done.stdout
        assert f"main {file}" in done.stdout
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("python", PYTHONS)
def test_every_version_of_python(environ: dict[str, str], tmp_path: Path, python: str) -> None:
    process = started(tmp_path, python=python)
    try:
        assert f"  deep {tmp_path / 'program.py'}:5" in gpulse(environ, "stacks", str(process.pid)).stdout
    finally:
        ended(process)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 2, "is not a process id; write it as gpulse stacks 4242."),
        (("x",), 2, "stacks: 'x' is not a process id"),
        (("0",), 2, "stacks: '0' is not a process id"),
        (("999999999",), 1, "process 999999999 does not exist."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    environ: dict[str, str], words: tuple[str, ...], code: int, sentence: str
) -> None:
    done = gpulse(environ, "stacks", *words, code=code)
    assert sentence in done.stderr
    assert (len(done.stderr.splitlines()), done.stdout) == (1, "")


def test_a_program_that_is_not_python(environ: dict[str, str]) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        done = gpulse(environ, "stacks", str(process.pid), code=1)
        assert done.stderr == f"gpulse: process {process.pid} is not a Python program.\n"
        process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_does_not_read_others_unless_asked(environ: dict[str, str]) -> None:
    command = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-S", "-c"]
    code = "print('ready', flush=True); import sys; sys.stdin.readline()"
    with subprocess.Popen([*command, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            pytest.skip("another user cannot run this Python")
        refused = gpulse(environ, "stacks", str(process.pid), code=1)
        assert "only your own processes are read" in refused.stderr
        assert "<module>" in gpulse(environ, "stacks", str(process.pid), "--any-user").stdout
        process.kill()


# --- the lines of code


def watched(tmp_path: Path, program: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A program, and a machine on whose GPU it is, which computes half of the time."""
    file = tmp_path / "train.py"
    file.write_text(program)
    process = subprocess.Popen([sys.executable, str(file), str(tmp_path / "end")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    machine = Scenario.load("h200-idle").gpu(0, gpm__sm=50, utilization__gpu=60)
    machine = machine.process(gpu=0, pid=process.pid, memory="4 GiB", sm=50)
    return process, environment(machine, tmp_path / "machine", NO_COLOR="1", COLUMNS="120")


def test_why_names_the_lines_of_a_process(tmp_path: Path) -> None:
    process, environ = watched(tmp_path, BUSY)
    try:
        text = gpulse(environ, "why", str(process.pid), "--for", "6s").stdout
        assert "of it in train.py:4 slow_metric(…)" in text.replace("train.py:5", "train.py:4")
        assert "This is Python at work while the GPU waits" in text
        plain = json.loads(gpulse(environ, "why", str(process.pid), "--for", "6s", "--json").stdout)
        first = plain["code"][0]
        assert (first["file"], first["function"]) == (str(tmp_path / "train.py"), "slow_metric")
        assert (first["waited"] > 0.5, plain["code_problem"]) == (True, None)
        environ |= {"XDG_RUNTIME_DIR": str(tmp_path)}
        line = CodeLine(str(tmp_path / "train.py"), 4, "slow_metric", 58.0, 2.0)
        PresenceFile(process.pid, environ).write({"run": "r", "seconds": 60.0, "code": [line._asdict()]})
        text = gpulse(environ, "why", "--for", "2s").stdout
        assert f"Process {process.pid}\n" in text, "a program with a Monitor knows its lines itself"
        assert "The GPU waited 58 of 60 s; 58 s of it in train.py:4 slow_metric(…)." in text
        plain = json.loads(gpulse(environ, "why", "--for", "2s", "--json").stdout)
        assert plain["programs"] == [{"pid": process.pid, "run": "r", "code": [line.to_plain()]}]
        assert "code" not in plain
    finally:
        ended(process)


def test_why_says_what_py_spy_would_add(tmp_path: Path) -> None:
    process, environ = watched(tmp_path, BUSY)
    try:
        code = "import sys; sys.executable = '/nowhere/python'; from gpulse.cli.main import main; sys.exit(main(sys.argv[1:]))"
        done = subprocess.run(
            [sys.executable, "-c", code, "why", str(process.pid), "--for", "2s"],
            capture_output=True, text=True, check=True, timeout=PATIENCE, env={**environ, "PATH": "/nowhere"},
        )  # fmt: skip
        assert re.search(r"Install it with `.* install 'py-spy>=", " ".join(done.stdout.split()))
    finally:
        ended(process)
    assert process.returncode == -9  # ended by us


IN_RUN = """
import os, sys, time
def slow_metric():
    until = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until:
        pass
slow_metric()
"""


# The driver tells pids, which nobody knows before the command runs: it writes its own into the scenario, and gpulse waits for that.
WAITING = """
import os, sys, time
from gpulse.cli.commands import run
from gpulse.cli.main import main
def watch(*arguments, start=run._watch):
    while "4194304" in open(os.environ["FAKE_NVML_SCENARIO"]).read():
        time.sleep(0.01)
    return start(*arguments)
run._watch = watch
sys.exit(main(sys.argv[1:]))
"""
WRITING = """
import os
path = os.environ["FAKE_NVML_SCENARIO"]
text = open(path).read().replace("4194304", str(os.getpid()))
with open(path + ".new", "w") as file:
    file.write(text)
os.replace(path + ".new", path)
"""


@pytest.mark.parametrize("more", [(), ("--no-stacks",)], ids=["", "--no-stacks"])
def test_run_ends_with_the_lines(tmp_path: Path, more: tuple[str, ...]) -> None:
    machine = Scenario.load("h200-idle").gpu(0, gpm__sm=50, utilization__gpu=60)
    machine = machine.process(gpu=0, pid=4194304, memory="4 GiB", sm=50)
    environ = environment(machine, tmp_path / "machine", NO_COLOR="1")
    file = tmp_path / "train.py"
    file.write_text(WRITING + IN_RUN)
    command = ["run", *more, "--interval", "0.5", "--", sys.executable, str(file), "10"]
    done = subprocess.run(
        [sys.executable, "-c", WAITING, *command],
        capture_output=True, text=True, check=True, timeout=PATIENCE, env=environ,
    )  # fmt: skip
    assert ("slow_metric(…)" in done.stderr) == (not more), done.stderr
