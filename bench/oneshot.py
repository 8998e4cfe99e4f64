"""One sample from the shell: wall time of whole commands, every tool once a round.

`python -m bench.oneshot` prints single samples of 64 GPUs, each command in turn; run it as `chrt -r 10 python -m bench.oneshot` on a
machine that has other work.
"""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import time
from statistics import median

from bench.machine import BIN, machine

PYTHON = str(BIN / "python")
COMMANDS: dict[str, list[str]] = {
    "python -c pass": [PYTHON, "-c", "pass"],
    "import gpulse": [PYTHON, "-c", "import gpulse"],
    "import pynvml; nvmlInit()": [PYTHON, "-c", "import pynvml; pynvml.nvmlInit()"],
    "gpulse --version": [str(BIN / "gpulse"), "--version"],
    "gpulse, complete": [str(BIN / "gpulse")],
    "gpulse -p -c, five columns": [
        str(BIN / "gpulse"),
        "-c",
        "utilization,memory_used,temperature,power_draw,clock_sm",
        "-p",
    ],
    "nvitop -1": [str(BIN / "nvitop"), "-1"],
    "gpustat": [str(BIN / "gpustat")],
}
MANY: dict[str, list[str]] = {
    "import pynvml; nvmlInit()": COMMANDS["import pynvml; nvmlInit()"],
    "gpulse": [str(BIN / "gpulse")],
    "gpulse --no-activity": [str(BIN / "gpulse"), "--no-activity"],
    "gpulse -c, two columns": [str(BIN / "gpulse"), "-c", "utilization,memory_used"],
    "gpulse --json": [str(BIN / "gpulse"), "--json"],
    "gpulse --json=gpustat": [str(BIN / "gpulse"), "--json=gpustat"],
}
FIRST = "gpulse, first picture on a terminal"
BEFORE = "gpulse, GPUs without activity counters"
BASE = "import pynvml; nvmlInit()"


def wall(command: list[str], env: dict[str, str]) -> float:
    """Return how long a command takes, in ms."""
    start = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1000


def first_picture(env: dict[str, str]) -> float:
    """Return how long it takes until gpulse has drawn the last GPU on a terminal, in ms."""
    parent, child = pty.openpty()
    start = time.perf_counter()
    process = subprocess.Popen([str(BIN / "gpulse")], env=env, stdout=child, stderr=child, stdin=child)
    os.close(child)
    seen = b""
    while seen.count(b"\n") < 10:
        seen += os.read(parent, 65536)
    taken = (time.perf_counter() - start) * 1000
    try:
        while os.read(parent, 65536):
            pass
    except OSError:
        pass  # the other end is closed
    process.wait()
    os.close(parent)
    return taken


def table(rounds: int = 15) -> list[str]:
    """Return the Markdown table of one run: 8 GPUs, 24 processes, the latencies of an H200."""
    times: dict[str, list[float]] = {name: [] for name in [*COMMANDS, FIRST, BEFORE]}
    with machine("dgx-h100x8", 8, 24) as env, machine("dgx-h100x8", 8, 24, activity=False) as older:
        for _ in range(rounds):
            for name, command in COMMANDS.items():
                times[name].append(wall(command, env))
            times[FIRST].append(first_picture(env))
            times[BEFORE].append(wall([str(BIN / "gpulse")], older))
    base = median(times[BASE])
    rows = [
        f"| `{name}` | {median(taken):.0f} ({min(taken):.0f}) | {median(taken) / base:.2f} |"
        for name, taken in sorted(times.items(), key=lambda entry: median(entry[1]))
    ]
    return [f"| command | wall ms, median (minimum) of {rounds} | x `{BASE}` |", "| --- | --- | --- |", *rows]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def many_gpus(rounds: int = 6) -> list[str]:
    """Return the Markdown table of one run: 64 GPUs, a process on each, the latencies of an H200."""
    walls: dict[str, list[float]] = {name: [] for name in MANY}
    cpus: dict[str, list[float]] = {name: [] for name in MANY}
    with machine("fleet64", 64, 64) as env:
        for _ in range(rounds):
            for name, command in MANY.items():
                before = _cpu()
                walls[name].append(wall(command, env))
                cpus[name].append(_cpu() - before)
    base = min(walls[BASE])
    rows = [
        f"| `{name}` | {min(walls[name]):.0f} | {min(walls[name]) / base:.1f} | {min(cpus[name]):.0f} |"
        for name in MANY
    ]
    return [f"| command | wall ms, minimum of {rounds} | x `{BASE}` | CPU ms |", "| --- | --- | --- | --- |", *rows]


if __name__ == "__main__":
    from bench.machine import install

    install()
    print("\n".join(many_gpus()))
