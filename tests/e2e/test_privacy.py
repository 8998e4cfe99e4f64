"""Commands of other users, on every surface that prints them, with the machine's policy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.lab import ROOT, environment
from tests.fake_nvml import Scenario

WORD = "90.00712345"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield an environment in which a process of another user is on the GPU."""
    with subprocess.Popen(["sleep", WORD], user=65534, group=65534) as other:
        scenario = Scenario.load("h200-busy").process(gpu=0, pid=other.pid, memory="4 GiB", sm=80)
        yield environment(scenario, tmp_path) | {"GPULSE_HISTORY": str(tmp_path / "history.db")}
        other.kill()


def said(env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", *words],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_every_surface_tells_what_the_policy_allows(env: dict[str, str], tmp_path: Path) -> None:
    surfaces = [
        ("status", "--json", "--processes"),
        ("status", "--processes", "--color", "never"),
        ("query", "--query-compute-apps=pid,process_name,command", "--format=csv"),
        ("record", "-p", "-o", "-", "--count", "1"),
    ]
    known = [words for words in surfaces if WORD in said(env, *words)]
    assert ("status", "--json", "--processes") in known  # without a policy, commands are told
    strict = env | {"GPULSE_PRIVACY_COMMANDS": "program", "GPULSE_PRIVACY_USERS": "number"}
    for words in surfaces:
        told = said(strict, *words)
        assert WORD not in told, words
    assert '"user": "65534"' in said(strict, "status", "--json", "--processes")
    said(strict, "record", "--history", "--count", "2", "-n", "0.2")
    assert WORD.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("history.db*"))
