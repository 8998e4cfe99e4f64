"""`gpulse trace`: another terminal asks a program for a trace, and both go into one file with the GPU's counters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.monitor.presence import presence_of
from tests.e2e.programs import DEMO, Program, until
from tests.packages import require

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

STEPPING = """
import torch
layer = torch.nn.Linear(8, 8)
asked = []
threading.Thread(target=lambda: asked.append(sys.stdin.readline()), daemon=True).start()
with gpulse.Monitor("run.jsonl", interval=0.1, trace_signal="SIGUSR2") as m, m.phase("train"):
    print("ready", flush=True)
    while not asked:
        layer(torch.ones(4, 8)).sum().backward()
        m.step()
        time.sleep(0.005)
"""


def gpulse(folder: Path, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulse", *words]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_trace_of_the_next_steps_and_the_counters_in_one_file(tmp_path: Path) -> None:
    require("torch")
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path), "GPULSE_RUNS": str(tmp_path / "runs")}
    with Program(STEPPING, tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        done = gpulse(tmp_path, environ, "trace", str(program.pid), "--steps", "3")
        assert done.returncode == 0, done.stderr
        path = Path(done.stdout.strip())
        assert path.parent == tmp_path
        program.signal(signal.SIGUSR2)
        until(lambda: "gpulse: trace: " in program.err)
        program.go()
        assert program.end().code == 0
    done = gpulse(
        tmp_path, environ, "report", "run.jsonl", "--format", "perfetto", "--trace", str(path), "-o", "both.json"
    )
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "both.json").read_text())["traceEvents"]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    (train,) = [event for event in events if event["name"] == "train"]
    assert len({event["name"] for event in steps}) == 3
    assert all(train["ts"] <= event["ts"] <= train["ts"] + train["dur"] for event in steps)  # one clock
    assert any(event["ph"] == "C" for event in events)


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path)}
    for words, code, message in (
        (("trace", "1"), 1, "process 1 has no Monitor of yours that could write a trace."),
        (("trace", "one"), 2, "'one' is not a process id"),
        (("trace", "1", "--steps", "0"), 2, "'0' is not a number of steps from 1 to 1000"),
        (("report", "x.jsonl", "--trace", "t.json"), 2, "--trace needs --format perfetto"),
    ):
        done = gpulse(tmp_path, environ, *words)
        assert (done.returncode, len(done.stderr.splitlines())) == (code, 1), done.stderr
        assert message in done.stderr


def test_a_program_without_torch_says_so(tmp_path: Path) -> None:
    environ = DEMO | {"XDG_RUNTIME_DIR": str(tmp_path)}
    code = "m = gpulse.Monitor(interval=0.1).start()\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    with Program(code, tmp_path, environ) as program:
        program.line()
        until(lambda: presence_of(program.pid, environ))
        done = gpulse(tmp_path, environ, "trace", str(program.pid))
        assert done.returncode == 1
        assert "the program does not use torch, whose profiler would trace it" in done.stderr
        program.go()
        program.end()
