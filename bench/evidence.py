"""What the evidence of a diagnosis costs: CPU of sampling 8 GPUs and 24 processes once per second, and bytes of a recording.

`python -m bench.evidence` prints both tables; `python -m bench.evidence cpu` is the child on the scripted machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from bench.machine import ROOT, machine
from gpulse.model.catalog import EVIDENCE, GLANCE, HOST_CURVES, PROCESS_EVIDENCE, TRACES, USERS
from gpulse.model.codec import to_line
from gpulse.model.select import EVERYTHING, Wanted
from gpulse.sampling.clock import SystemClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.nvidia.source import NvidiaSource
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.packed import Packer

SECONDS = 60
LINES = 600
SHOWN = (*USERS, "command", "running_time", "cpu_percent", "tree_cpu_percent", "children", "sm_utilization")
THROTTLING = ("throttle_time_power_cap", "throttle_time_thermal")
SCREENS = {
    "what a screen shows": Wanted(GLANCE, SHOWN, HOST_CURVES),
    "and the evidence of processes": Wanted(GLANCE, (*SHOWN, *PROCESS_EVIDENCE), HOST_CURVES),
    "and traces of utilization: all evidence": Wanted((*GLANCE, *EVIDENCE), (*SHOWN, *PROCESS_EVIDENCE), HOST_CURVES),
    "and traces of power": Wanted((*GLANCE, *TRACES), (*SHOWN, *PROCESS_EVIDENCE), HOST_CURVES),
    "what a screen shows, and two throttling times": Wanted((*GLANCE, *THROTTLING), SHOWN, HOST_CURVES),
}
NO_OWNERS = EVERYTHING.gpu - {"memory_unattributed"}
RECORDINGS = {
    "GPUs and host": Wanted(NO_OWNERS, None, EVERYTHING.host),
    "with the evidence of processes": Wanted(EVERYTHING.gpu, PROCESS_EVIDENCE, EVERYTHING.host),
    "and traces of utilization: `record`": Wanted(EVERYTHING.gpu.union(EVIDENCE), PROCESS_EVIDENCE, EVERYTHING.host),
    "and traces of power": Wanted(EVERYTHING.gpu | TRACES, PROCESS_EVIDENCE, EVERYTHING.host),
    "`record -p`": Wanted(EVERYTHING.gpu.union(EVIDENCE), EVERYTHING.process, EVERYTHING.host),
}


class TurnedClock(SystemClock):
    """A clock that moves only when told."""

    at = 1000.0

    def now(self) -> float:
        return 1.79e9 + self.at

    def monotonic(self) -> float:
        return self.at

    def asleep(self) -> float:
        return 0.0


def cpu() -> dict[str, float]:
    """Return the percentage of a core that each set of metrics takes at one sample per second, all measured in turn."""
    clocks = {name: TurnedClock() for name in SCREENS}
    samplers = {name: Sampler(NvidiaSource(), SCREENS[name], clock=clocks[name]).open() for name in SCREENS}
    spent = dict.fromkeys(SCREENS, 0.0)
    for second in range(-1, SECONDS):
        for name, sampler in samplers.items():
            start = time.process_time()
            sampler.read()
            spent[name] += time.process_time() - start if second >= 0 else 0.0
            clocks[name].at += 1.0
    return {name: 100.0 * seconds / SECONDS for name, seconds in spent.items()}


def size(wanted: Wanted, gpus: Sequence[str]) -> tuple[float, float]:
    """Return the mean bytes of a line, plain and packed."""
    clock, packer = TurnedClock(), Packer()
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), wanted, clock=clock).open()
    if gpus:
        sampler.choose(gpus)
    plain = packed = 0
    for _ in range(LINES):
        line = f"{to_line(sampler.read())}\n".encode()
        plain, packed = plain + len(line), packed + len(packer.line(line))
        clock.at += 1.0
    return plain / LINES, packed / LINES


def main() -> None:
    """Print both tables."""
    if sys.argv[1:] == ["cpu"]:
        for name, share in cpu().items():
            print(f"| {name} | {share:.2f} |")
        return
    print("| sampled once per second | % of a core |\n| --- | --- |", flush=True)
    with machine("dgx-h100x8", 8, 24) as env:
        env["PYTHONPATH"] = f"{ROOT / 'src'}:{ROOT}"
        subprocess.run([sys.executable, "-m", "bench.evidence", "cpu"], env=env, check=True)
    print(
        "\n| a line of a recording of the demo | 1 GPU: bytes, packed | 8 GPUs: bytes, packed | MB per hour, packed |"
    )
    print("| --- | --- | --- | --- |")
    for name, wanted in RECORDINGS.items():
        (one, one_packed), (all_of, all_packed) = size(wanted, ["4"]), size(wanted, [])
        hours = f"{one_packed * 0.0036:.1f}, {all_packed * 0.0036:.1f}"
        print(f"| {name} | {one:.0f}, {one_packed:.0f} | {all_of:.0f}, {all_packed:.0f} | {hours} |")


if __name__ == "__main__":
    main()
