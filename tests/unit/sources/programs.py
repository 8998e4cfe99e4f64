"""Programs whose stacks are read, and programs in the place of py-spy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.sources import py_spy

# Says that it is ready, and stands in one line until it is told to end.
STANDING = """
import sys, threading
def deep():
    print("ready", flush=True)
    sys.stdin.readline()
class Loop:
    def run_loop(self):
        deep()
Loop().run_loop()
"""


def started(folder: Path, source: str = STANDING, python: str = sys.executable) -> subprocess.Popen[str]:
    """Start a program that prints a line once it is where it should be."""
    file = folder / "program.py"
    file.write_text(source)
    process = subprocess.Popen([python, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def ended(process: subprocess.Popen[str]) -> None:
    """End it, and close its streams."""
    process.kill()
    process.communicate()


def in_place_of_py_spy(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Let a shell script answer in the place of py-spy."""
    path = folder / "py-spy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(py_spy, "program", lambda: str(path))
