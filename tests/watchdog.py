"""Ends a test run that is stuck where Python's signal handlers do not run, such as in a C call, and names the test.

Run with the process id of the test run; reads "SECONDS NAME" for each test from standard input, and SECONDS 0 for none. It is
a process of its own: a thread in the test run would make Python 3.12 warn of every fork.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

_TO_WRITE = 5.0  # seconds for the tracebacks


def main(pid: int) -> None:
    """Wait for a test that takes too long, or for the end of the run."""
    limit: float | None = None
    name = ""
    while True:
        if not select.select([0], [], [], limit)[0]:
            end(pid, f"{name} is stuck and cannot be interrupted")
            return
        line = os.read(0, 65536).decode("utf-8", "replace").splitlines()
        if not line:
            return
        seconds, _, name = line[-1].partition(" ")
        limit = float(seconds) or None


def end(pid: int, text: str) -> None:
    """Write a text, have the run write its tracebacks, and end it with everything it started."""
    os.write(2, f"\n{text}\n".encode())
    started = [child for child in descendants(pid) if child != os.getpid()]
    kill(pid, signal.SIGABRT)  # faulthandler writes all tracebacks at this signal, even within a C call
    until = time.monotonic() + _TO_WRITE
    while time.monotonic() < until and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    for each in (*started, pid):
        kill(each, signal.SIGKILL)


def kill(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def descendants(pid: int) -> list[int]:
    """Return the processes started by a process, the youngest generation first."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in tasks.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [*descendants(child), child]
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
