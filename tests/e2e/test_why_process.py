"""`gpulse why PID`: a process that uses no GPU is reported at once, and a simulated process is none of this computer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.lab import environment
from tests.fake_nvml import Scenario

NOBODY = "999999999"  # more than the kernel ever gives out
LONG = ("--for", "10m")  # without an answer at once, the time limit below fails the test
PATIENCE = 60.0


def why(environ: dict[str, str], *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "why", *words],
        capture_output=True, text=True, check=False, timeout=PATIENCE, env={**environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def busy(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with one H200 that this process uses."""
    scenario = Scenario.load("h200-busy").process(gpu=0, pid=os.getpid(), memory="1 GiB", sm=80)
    return environment(scenario, tmp_path)


@pytest.mark.parametrize("also", [(), ("--json",), ("--check",)])
def test_a_process_that_does_not_exist(busy: dict[str, str], also: tuple[str, ...]) -> None:
    done = why(busy, NOBODY, *LONG, *also, code=2)
    assert done.stderr == f"gpulse: why: process {NOBODY} does not exist; see `gpulse status --processes`.\n"
    assert not done.stdout


def test_a_process_that_uses_no_gpu(busy: dict[str, str]) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        done = why(busy, str(process.pid), *LONG, code=2)
        process.kill()
    assert done.stderr == f"gpulse: why: process {process.pid} does not use a GPU; see `gpulse status --processes`.\n"


def test_a_process_on_another_gpu_than_the_chosen_one(tmp_path: Path) -> None:
    scenario = Scenario.load("dgx-h100x8").process(gpu=1, pid=os.getpid(), memory="1 GiB")
    done = why(environment(scenario, tmp_path), str(os.getpid()), "--gpu", "0", *LONG, code=2)
    assert f"process {os.getpid()} does not use these GPUs" in done.stderr


def test_where_processes_cannot_be_listed_nothing_is_claimed(tmp_path: Path) -> None:
    scenario = Scenario.load("no-permission")
    done = why(environment(scenario, tmp_path), str(os.getpid()), "--for", "2s", code=1)
    assert f"the GPUs of process {os.getpid()} are not known: the processes on GPU 3 cannot be read" in done.stderr
    assert "does not use" not in done.stderr


def test_the_gpus_of_this_process_are_judged(busy: dict[str, str]) -> None:
    plain = json.loads(why(busy, str(os.getpid()), "--for", "2s", "--no-stacks", "--json").stdout)
    assert [one["index"] for one in plain["gpus"]] == [0]


def test_a_simulated_process(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "GPULSE_HISTORY": str(tmp_path / "history.db")}
    done = why(environ, NOBODY, "--demo", *LONG, code=2)
    assert f"process {NOBODY} does not use a GPU" in done.stderr
    plain = json.loads(why(environ, "40562", "--demo", "--for", "2s", "--json").stdout)
    assert [one["index"] for one in plain["gpus"]] == [4]
    assert "code" not in plain  # this computer may have another process with that number
    # process 1 of this computer is no relative of the simulated processes
    assert "process 1 does not use a GPU" in why(environ, "1", "--demo", *LONG, code=2).stderr


def test_the_past_of_the_simulated_machine(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "GPULSE_HISTORY": str(tmp_path / "history.db")}
    plain = json.loads(why(environ, "--demo", "--since", "2h", "--json").stdout)
    assert {one["index"]: one["verdict"] for one in plain["gpus"]}[6] == "thermal_throttled"
    assert "process 17 does not use a GPU" in why(environ, "17", "--demo", "--since", "2h", code=2).stderr
    assert not (tmp_path / "history.db").exists()
