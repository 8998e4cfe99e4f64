"""What waiting costs: the CPU time of many `gpulse run --gpus 1 --wait` together, on 8 GPUs that others use."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.machine import BIN, install, machine

WAITERS, SETTLE, SECONDS = 20, 100.0, 60.0
WAIT = [str(BIN / "python"), "-m", "gpulse", "run", "-q", "--window", "0", "--gpus", "1", "--wait", "--", "true"]


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time of processes with all their threads, to the nanosecond."""
    tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def table(waiters: int = WAITERS, settle: float = SETTLE, seconds: float = SECONDS) -> list[str]:
    """Return the Markdown table of one run."""
    with tempfile.TemporaryDirectory() as claims, machine("dgx-h100x8", 8, 24) as env:
        started: list[subprocess.Popen[bytes]] = []
        try:
            for count in range(
                1, waiters + 1
            ):  # one after the other: a busy machine would count as a driver that hangs
                started.append(subprocess.Popen(WAIT, env=env | {"GPULSE_CLAIMS": claims}))
                while started[-1].poll() is None and len(list(Path(claims).glob("gpulse-queue-??????"))) < count:
                    time.sleep(0.05)
            time.sleep(settle)
            pids = [one.pid for one in started]
            before, start = cpu_seconds(pids), time.monotonic()
            time.sleep(seconds)
            share = 100 * (cpu_seconds(pids) - before) / (time.monotonic() - start)
        finally:
            for one in started:
                one.kill()
                one.wait()
    return ["| waiting programs | CPU together, % of a core |", "| --- | --- |", f"| {waiters} | {share:.2f} |"]


if __name__ == "__main__":
    install()
    print("\n".join(table()))
    sys.exit(0)
