"""Programs run for alerts: what they learn, what they never get, and how they end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from gpulse.analysis.alerts import Transition
from gpulse.delivery.delivery import Command, variables
from gpulse.sampling.clock import ManualClock
from tests.unit.delivery import transitions

NOTE = """
import os, sys, json
seen = {"argv": sys.argv[2:], "env": {k: v for k, v in os.environ.items() if k.startswith("GPULSE_")}}
seen["input"] = sys.stdin.read()
seen["group"] = os.getpgid(0) == os.getpid()
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(seen) + "\\n")
"""


def fire(text: str = "GPU 1 is hot", **values: float | str) -> Transition:
    return transitions.fire("hot", "GPU-1", 1_700_000_000.0, text, values or {"temperature": 99.5}, gpu="1", what="42")


def run(command: Command, *given: Transition) -> list[str]:
    said: list[str] = []
    command.say = said.append
    command.start()
    for transition in given:
        command.put(transitions.notice(transition))
    command.close()
    assert command.end(time.monotonic() + 30)
    return said


def noted(path: Path) -> list[dict[str, object]]:
    import json

    return [json.loads(line) for line in path.read_text().splitlines()]


def test_all_there_is_to_know_is_in_the_environment_and_nothing_in_the_arguments(tmp_path: Path) -> None:
    note = tmp_path / "note"
    command = Command([sys.executable, "-c", NOTE, str(note), "$GPULSE_TEXT", "$(touch x)"], host="node7")
    assert run(command, fire(temperature=99.5, user="ada")) == []
    (seen,) = noted(note)
    assert seen["argv"] == ["$GPULSE_TEXT", "$(touch x)"]
    assert seen["input"] == ""
    assert seen["group"] is True
    env = seen["env"]
    assert isinstance(env, dict)
    assert {key: value for key, value in env.items() if key in variables(transitions.notice(fire()), "")} == {
        "GPULSE_KIND": "fire",
        "GPULSE_COUNT": "1",
        "GPULSE_GPUS": "1",
        "GPULSE_ID": fire().id,
        "GPULSE_USER": "ada",
        "GPULSE_JOB": "",
        "GPULSE_LINK": "",
        "GPULSE_RULE": "hot",
        "GPULSE_STATE": "fire",
        "GPULSE_SEVERITY": "warn",
        "GPULSE_GPU": "1",
        "GPULSE_UUID": "GPU-1",
        "GPULSE_WHAT": "42",
        "GPULSE_TIME": "1700000000.000",
        "GPULSE_TEXT": "GPU 1 is hot",
        "GPULSE_HOST": "node7",
        "GPULSE_VALUE": "99.5",
        "GPULSE_VALUE_TEMPERATURE": "99.5",
    }
    assert env["GPULSE_VALUE_USER"] == "ada"


@pytest.mark.parametrize(
    "name", ["$(touch {0})", "`touch {0}`", "; touch {0};", "' || touch {0} '", '" && touch {0} "', "a\n touch {0}"]
)
def test_a_name_that_would_be_a_command_is_only_text(tmp_path: Path, name: str) -> None:
    trap, note = tmp_path / "trap", tmp_path / "note"
    said = run(Command([sys.executable, "-c", NOTE, str(note)]), fire(name.format(trap)))
    assert said == []
    assert not trap.exists()
    (seen,) = noted(note)
    env = seen["env"]
    assert isinstance(env, dict)
    assert env["GPULSE_TEXT"] == name.format(trap).replace("\n", r"\x0a")


def test_control_characters_nul_and_lone_surrogates_never_reach_it(tmp_path: Path) -> None:
    note = tmp_path / "note"
    odd = transitions.fire("hot", "GPU\0-1", 1.0, "a\0b\x1b[2J\ud800\u202e", {"user": "x\0y\n"})
    assert run(Command([sys.executable, "-c", NOTE, str(note)]), odd) == []
    env = noted(note)[0]["env"]
    assert isinstance(env, dict)
    assert (env["GPULSE_TEXT"], env["GPULSE_UUID"], env["GPULSE_VALUE_USER"]) == (
        r"a\x00b\x1b[2J\ud800\u202e",
        "GPU?-1",
        "x?y?",
    )


def test_one_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    pids, clock, said = tmp_path / "pids", ManualClock(), list[str]()
    pids.touch()
    hang = "import os, sys, time; child = os.fork(); open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(600)"
    command = Command([sys.executable, "-c", hang, str(pids)], timeout=60.0, clock=clock)
    command.say = said.append
    command.start()
    command.put(transitions.notice(fire()))
    while pids.read_text().count("\n") < 2:  # both run
        time.sleep(0.01)
    clock.sleep(60.0)
    command.close()
    assert command.end(time.monotonic() + 60)
    assert said == [
        f"alerts: command: {sys.executable} took too long and was killed (reported once; further alerts are still sent)."
    ]
    assert command.failed == 1
    for pid in map(int, pids.read_text().split()):
        _wait_gone(pid)


def test_closing_kills_one_that_hangs(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    hang = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    command = Command([sys.executable, "-c", hang, str(fifo)], timeout=60)
    command.start()
    command.put(transitions.notice(fire()))
    pid = int(fifo.read_text())  # it runs
    command.close()
    assert not command.end(time.monotonic())
    _wait_gone(pid)


def _wait_gone(pid: int) -> None:
    """Wait until a process is gone, or nothing but an entry nobody has reaped yet."""
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"{pid} lives")


@pytest.mark.parametrize(
    ("run_this", "why"),
    [
        (["/nowhere/at/all"], "/nowhere/at/all cannot be run: No such file or directory"),
        (["/etc/passwd"], "/etc/passwd cannot be run: Permission denied"),
        (["false"], "false ended with 1"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"], "ended with -15"),
    ],
)
def test_failures_are_said_once_and_counted(run_this: list[str], why: str) -> None:
    command = Command(run_this)
    said = run(command, fire(), fire())
    assert len(said) == 1
    assert why in said[0]
    assert command.failed == 2


def test_a_burst_runs_one_at_a_time_and_in_order(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = 'mkdir "$1.lock" || exit 3; echo "$GPULSE_VALUE" >> "$1"; rmdir "$1.lock"'
    command = Command(["/bin/sh", "-c", script, "sh", str(note)], limit=0)
    assert run(command, *(fire(count=float(at)) for at in range(100))) == []
    assert note.read_text().split() == [str(at) for at in range(100)]
    assert command.delivered == 100
