"""What a phase or a measurement in every step costs: CPU of the sampling process and of the program, on a scripted driver with 8 GPUs.

python -m bench.phases
"""

from __future__ import annotations

import os
import subprocess
import sys

from bench.machine import ROOT, machine

_SECONDS = 8.0
_KINDS = ("nothing", "phase", "measure")


def program(kind: str) -> str:
    """Run 500 steps per second with a monitor, and return the figures as a Markdown row."""
    import time

    import gpulse

    def cpu(pid: int) -> float:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    with gpulse.Monitor() as monitor:
        while monitor.latest is None or monitor.agent_pid is None:
            time.sleep(0.05)
        agent, steps = monitor.agent_pid, 0
        start, used, own = time.monotonic(), cpu(agent), time.process_time()
        while (passed := time.monotonic() - start) < _SECONDS:
            if kind == "phase":
                with monitor.phase("step"):
                    time.sleep(0.0018)
            elif kind == "measure":
                with gpulse.measure("step", show=False):
                    time.sleep(0.0018)
            else:
                time.sleep(0.0018)
            steps += 1
        shares = [100 * (cpu(agent) - used) / passed, 100 * (time.process_time() - own) / passed]
    return f"| {kind} | {steps / passed:.0f} | {shares[0]:.1f} % | {shares[1]:.1f} % |"


def main() -> int:
    """Print one row for each kind of step."""
    if len(sys.argv) > 1:
        print(program(sys.argv[1]))
        return 0
    print("| in every step | steps/s | sampling process | program |\n| --- | --- | --- | --- |", flush=True)
    with machine("h200-busy", gpus=8, processes=8) as env:
        env |= {"GPULSE_SOURCE": "nvidia", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        for kind in _KINDS:
            subprocess.run([sys.executable, "-m", "bench.phases", kind], env=env, cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
