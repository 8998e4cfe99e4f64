"""Every verb with --demo, or on a recorded machine, in a home full of real state: it reads none of it and changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.cli.main import VERBS
from tests.e2e.real_state import MARK, Home, full

PATIENCE = 60.0
# the words of verbs that need some, or more than one way to use them; others are tried without any
WORDS: dict[str, list[list[str]]] = {
    "status": [[], ["--json"], ["--processes"]],
    "query": [["--query-gpu=index", "--format=csv"]],
    "why": [["--for", "1s"], ["--fleet", "--for", "10s"]],
    "stacks": [["1"]],
    "smi": [["-L"], []],
    "run": [["--", "true"], ["--gpus", "1", "--window", "0", "--", "true"], ["--gpus", "8", "--timeout", "1", "--", "true"]],
    "pick": [["2", "--window", "0"], ["8", "--window", "0", "--timeout", "1"], ["--fleet"]],
    "queue": [[], ["--json"], ["cancel", "c41e08"]],
    "reserve": [["1", "--for", "1h"], ["extend", "90b7de", "--for", "2h"]],
    "release": [[], ["--all"]],
    "runs": [[], ["show", "0.2"]],
    "record": [["-o", "-", "--count", "1"], ["--history", "--count", "1"]],
    "replay": [["--status", "--speed", "max"]],
    "alerts": [[], ["silence", "--all"], ["ack", "x"], ["test"]],
    "config": [[], ["check"], ["init"]],
    "service": [[], ["install", "--yes"], ["uninstall"]],
    "completion": [["bash"]],
    "doctor": [[], ["--report"], ["--capture", "gpus"]],
    "usage": [[], ["--by", "group"]],
}  # fmt: skip
UNTIL_STOPPED = {"top", "serve"}  # these run until they are stopped, here when they have printed something
COMMANDS = [(verb, words) for verb in VERBS for words in WORDS.get(verb, [[]])]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with full(Home(tmp_path)) as home:
        yield home


def run(home: Home, verb: str, *words: str) -> str:
    """Return all that a command printed; one that runs until it is stopped is interrupted."""
    with subprocess.Popen(
        [sys.executable, "-m", "gpulse", verb, *words],
        cwd=home.temporary,
        env=home.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = ""
        if verb in UNTIL_STOPPED:
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
        return first + process.communicate(timeout=PATIENCE)[0]


def check(home: Home, said: str, before: dict[str, tuple[bytes, int, int]]) -> None:
    assert "Traceback" not in said, said
    assert MARK not in said.lower(), said
    assert home.touched() == []
    assert home.files() == before
    assert os.listdir(home.temporary) == []


@pytest.mark.parametrize(("verb", "words"), COMMANDS, ids=[" ".join([verb, *words]) for verb, words in COMMANDS])
def test_a_demo_leaves_the_machine_alone(home: Home, verb: str, words: list[str]) -> None:
    before = home.files()
    port = ["--port", "0"] if verb == "serve" else []
    said = run(home, verb, "--demo", *port, *words)
    check(home, said, before)


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["pick", "--window", "0"],
        ["queue"],
        ["reserve", "1", "--for", "1h"],
        ["release", "--all"],
        ["run", "--gpus", "1", "--window", "0", "--", "true"],
        ["alerts"],
        ["alerts", "silence", "--all"],
    ],
    ids=" ".join,
)
def test_neither_does_a_recording(home: Home, tmp_path: Path, words: list[str]) -> None:
    """The GPUs of a recording may well be those of this machine."""
    recording = tmp_path / "run.ndjson"
    run(home, "record", "--demo", "-o", str(recording), "--count", "20", "--interval", "0.01")
    home.opened.unlink()
    home.environ["GPULSE_MACHINE_CONFIG"] = str(
        tmp_path / "none.toml"
    )  # the privacy of the machine counts for recordings, too
    before = home.files()
    check(home, run(home, words[0], "--source", f"replay:{recording}", *words[1:]), before)


def test_the_settings_of_the_environment_do_not_count_either(home: Home) -> None:
    home.environ["GPULSE_SOURCE"] = "demo"
    home.environ["GPULSE_SERVE_OTLP"] = f"https://{MARK}.example/v1/metrics"
    before = home.files()
    said = run(home, "serve", "--port", "0")
    check(home, said, before)


def test_the_theme_of_the_settings_does(home: Home) -> None:
    colored = run(home, "status", "--demo", "--color", "always")
    (home.folder / "config/gpulse/config.toml").write_text('[terminal]\ntheme = "dark"\n')
    assert run(home, "status", "--demo", "--color", "always") != colored


def test_what_a_killed_demo_left_is_removed_by_the_next(home: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "gpulse", "top", "--demo"], env=home.environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    assert len(os.listdir(home.temporary)) == 1
    run(home, "status", "--demo")
    assert os.listdir(home.temporary) == []
