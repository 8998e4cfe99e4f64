"""Runs that are kept: written by `gpulse run` and by a Monitor inside it, listed, shown, compared, and left by a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpulse.store.runs import kept_runs
from tests.e2e.programs import PRELUDE, on, until
from tests.fake_nvml import Scenario

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

GPULSE = (sys.executable, "-m", "gpulse")
TRAINING = """
onto_the_gpus()
with gpulse.Monitor(interval=0.1, flops_per_step=1e12, dtype="bfloat16") as m:
    until(lambda: m.latest)
    for at in range(40):
        time.sleep(0.01)
        m.waited(0.002)
        m.step(items=8, tokens=64)
"""


class Machine:
    """One H200 whose only process is the program, and a folder of runs."""

    def __init__(self, folder: Path) -> None:
        scenario = Scenario.load("h200-busy")
        self.folder = folder
        self.runs = str(folder / "runs")
        self.environ = on(scenario, folder, GPULSE_RUNS=self.runs)
        (folder / "train.py").write_text(PRELUDE + TRAINING)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*GPULSE, *words],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=self.folder,
        )

    def train(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.run("run", *options, "--", sys.executable, "train.py", "--api-key", "sk-secret123")

    def json(self, *words: str) -> Any:
        done = self.run("runs", *words, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    made = Machine(tmp_path_factory.mktemp("machine"))
    for _ in range(2):
        done = made.train("-o", "run.ndjson.gz", "--force", "--report", "run.html")
        assert done.returncode == 0, done.stderr
    made.last = done.stderr  # type: ignore[attr-defined]
    return made


def test_a_run_and_the_monitor_in_it_are_one(machine: Machine) -> None:
    runs = machine.json("list")["runs"]
    assert len(runs) == 2
    run = machine.json("show", "last")
    assert run == runs[0]
    assert run["command"].endswith("train.py --api-key ***")
    assert (run["exit_code"], run["result"], run["state"]) == (0, "ok", "ended")
    assert run["throughput"]["steps"] == 40
    assert run["throughput"]["tokens"] == 2560
    assert run["throughput"]["flops_per_second"] > 0
    assert len(run["step_blocks"]) >= 39
    assert run["step_time"]["p50"] >= 0.01
    assert run["recording"] == str(machine.folder / "run.ndjson.gz")
    assert run["report"] == str(machine.folder / "run.html")
    assert run["code"] == [] or {"file", "line", "function", "waited", "computed"} <= run["code"][0].keys()


def test_no_secret_is_kept_and_only_the_user_can_read_it(machine: Machine) -> None:
    for run in kept_runs(machine.runs):
        assert os.stat(run.path).st_mode & 0o077 == 0
        assert "sk-secret123" not in Path(run.path).read_text()


def test_the_end_of_a_run_says_how_it_compares(machine: Machine) -> None:
    first = machine.json("show", "last~1")["id"].rpartition("-")[2]
    assert f"(run {first}), ± " in machine.last.splitlines()[-1]  # type: ignore[attr-defined]


def test_two_runs_are_compared(machine: Machine) -> None:
    compared = machine.json("compare")
    assert compared["before"] == machine.json("show", "last~1")["id"]
    assert compared["after"] == machine.json("show", "last")["id"]
    assert compared["margin"] > 0
    lines = machine.run("runs", "compare", "last~1", "last").stdout.splitlines()
    assert any(line.startswith("Steps per second") for line in lines)


def test_the_list_fits_a_narrow_terminal(machine: Machine) -> None:
    machine.environ["COLUMNS"] = "80"
    try:
        lines = machine.run("runs").stdout.splitlines()
    finally:
        del machine.environ["COLUMNS"]
    assert lines[0].split()[0] == "RUN"
    assert all(len(line) <= 80 for line in lines)
    assert "train.py" in lines[1] + lines[2]


def test_the_report_of_a_run_is_opened_or_its_path_is_printed(machine: Machine) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        machine.environ.pop(name, None)
    assert machine.run("runs", "open", "last").stdout == f"{machine.folder / 'run.html'}\n"


def test_report_takes_the_names_of_runs(machine: Machine) -> None:
    done = machine.run("report", "--compare", "last", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["speed"]["after"] == machine.json("show", "last")["id"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "zz"), "no run has an id that starts with 'zz'"),
        (("show", "last~9"), "there is no run 'last~9'"),
        (("shw",), "'shw' is none of list, show, compare, open"),
        (("compare", "a", "b", "c"), "compare takes at most 2 runs, not 3"),
        (("-n", "many"), "'many' is not a number of runs"),
    ],
)
def test_mistakes_are_one_sentence(machine: Machine, words: tuple[str, ...], message: str) -> None:
    done = machine.run("runs", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_runs_there_is_a_hint(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.run("runs").stdout.startswith("No runs yet: ")
    machine.environ["GPULSE_RUNS"] = "off"
    done = machine.run("runs")
    assert (done.returncode, done.stderr) == (
        1,
        "gpulse: runs are not kept here: GPULSE_RUNS is off. Unset it to keep them.\n",
    )


def test_a_command_that_is_killed_and_a_gpulse_that_is_killed(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run("run", "-q", "--", "sh", "-c", "kill -9 $$")
    assert machine.json("show")["result"] == "SIGKILL"
    command = [*GPULSE, "run", "-q", "--", "sleep", "100"]
    with subprocess.Popen(command, env=machine.environ, cwd=machine.folder, start_new_session=True) as process:
        until(lambda: next(kept_runs(machine.runs)).text("command") == "sleep 100")
        assert machine.json("show")["result"] == "running"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: machine.json("show")["result"] == "killed")


def test_a_command_without_steps_makes_no_claim(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for _ in range(2):
        assert machine.run("run", "--", "true").stderr.startswith("gpulse: true · ")
    done = machine.run("runs", "compare")
    assert "Speed cannot be compared with " in done.stdout
    assert "counted no steps" in done.stdout
