"""A loop of CSV lines: CPU of `gpulse query --loop-ms=100`, and of nvidia-smi started once a line where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

FIELDS = "index,utilization.gpu,memory.used,temperature.gpu,power.draw"
SECONDS = 10


def spent(command: list[str], env: dict[str, str] | None = None) -> tuple[float, float]:
    """Return CPU and wall seconds of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def loop(gpulse: list[str], env: dict[str, str] | None = None) -> tuple[float, float]:
    """Return percent of a core and CPU ms per sample of a loop at ten samples per second, without the start-up."""
    command = [*gpulse, "query", f"--query-gpu={FIELDS}", "--format=csv", "--loop-ms=100"]
    once, _ = spent([*command, "--count=1"], env)
    samples = SECONDS * 10
    cpu, wall = spent([*command, f"--count={samples + 1}"], env)
    return 100 * (cpu - once) / wall, 1000 * (cpu - once) / samples


def table() -> list[str]:
    """Return the Markdown lines of one run on the scripted machine."""
    from bench.machine import BIN, machine

    out = [
        "| `gpulse query`, five fields, 10 samples a second | % of a core | CPU ms a sample |",
        "| --- | --- | --- |",
    ]
    for gpus in (1, 8):
        with machine("dgx-h100x8", gpus, 0) as env:
            share, each = loop([str(BIN / "gpulse")], env)
        out.append(f"| {gpus} GPUs, latencies of an H200 | {share:.2f} | {each:.2f} |")
    return out


def main() -> int:
    """Measure on this machine's own driver, beside nvidia-smi."""
    share, each = loop([sys.executable, "-m", "gpulse"])
    print(f"gpulse query: {share:.2f} % of a core, {each:.2f} ms of CPU a line")
    if shutil.which("nvidia-smi"):
        command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv"]
        times = [spent(command)[0] for _ in range(10)]
        line = 1000 * sum(times) / len(times)
        print(f"nvidia-smi started once a line: {line:.1f} ms of CPU a line, {line / each:.0f} times as much")
    return 0


if __name__ == "__main__":
    sys.exit(main())
