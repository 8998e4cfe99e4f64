"""Every way nvidia-smi is called that was found in public: each is answered, handed to NVIDIA's own program, or refused."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, environment
from tests.fake_nvml import Scenario
from tests.fake_nvml.scenario import SCENARIOS

# the process on the GPU is this one, whatever shell stands between
BUSY = Scenario.parse((SCENARIOS / "h200-busy.ini").read_text().replace("pid = parent", f"pid = {os.getpid()}"))
LINES = (Path(__file__).parent / "smi_invocations.txt").read_text().splitlines()
REFUSED = 3


def _entries() -> list[tuple[int, str, str]]:
    """Exit code, pattern and command; a pattern may hold an escaped bar, the command any."""
    entries = []
    for line in LINES:
        if not line or line.startswith("#"):
            continue
        code, rest = line.split("|", 1)
        pattern, command = re.split(r"(?<!\\)\|(?=nvidia-smi|timeout)", rest, maxsplit=1)
        entries.append((int(code), pattern, command))
    return entries


ENTRIES = _entries()
_WRITES = re.compile(r"-f |--filename")
PLAIN = [
    entry for entry in ENTRIES if re.fullmatch(r"nvidia-smi[^|'\"<>$]*", entry[2]) and not _WRITES.search(entry[2])
]
SHELL = [entry for entry in ENTRIES if entry not in PLAIN]


def check(code: int, pattern: str, out: str, err: str, wanted: int) -> None:
    assert code == wanted, (out, err)
    assert "Traceback" not in err
    first = out.splitlines()[0] if out else ""
    assert re.fullmatch(pattern, first), first
    assert err == "" or wanted == REFUSED, err


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program in the place of NVIDIA's own nvidia-smi."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "nvidia-smi").write_text('#!/bin/sh\necho "handed over: $*"\n')
    (folder / "nvidia-smi").chmod(0o755)
    return folder


@pytest.mark.parametrize(("code", "pattern", "command"), PLAIN, ids=[entry[2] for entry in PLAIN])
def test_a_plain_call_is_answered(lab: Lab, theirs: Path, code: int, pattern: str, command: str) -> None:
    answer = lab.run(BUSY, "smi", *shlex.split(command)[1:], PATH=str(theirs))
    check(answer.code, pattern, answer.out, answer.err, code)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, theirs: Path) -> dict[str, str]:
    """An environment in which nvidia-smi is gpulse, and NVIDIA's own comes after it."""
    folder = tmp_path_factory.mktemp("invocations")
    env = environment(BUSY, folder / "driver")
    install = [sys.executable, "-m", "gpulse", "smi", "--install", str(folder / "bin")]
    subprocess.run(install, env=env, capture_output=True, check=True, timeout=60)
    return env | {"PATH": f"{folder / 'bin'}:{theirs}:{env['PATH']}"}


@pytest.mark.parametrize(("code", "pattern", "command"), SHELL, ids=[entry[2] for entry in SHELL])
def test_a_call_in_a_script_is_answered(
    env: dict[str, str], tmp_path: Path, code: int, pattern: str, command: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", command], env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    check(done.returncode, pattern, done.stdout, done.stderr, code)


def test_the_table_is_long_enough_and_few_are_refused() -> None:
    refused = [command for code, _, command in ENTRIES if code == REFUSED]
    assert len(ENTRIES) >= 148
    changing = re.compile(
        r" -(pm|pl|lgc|rgc|lmc|r|ac|e|am|c|mig)( |$)|--gpu-reset|--auto-boost|--power-limit| mig -(cgi|i 0 -d)"
    )
    assert len([command for command in refused if not changing.search(command)]) <= 1
