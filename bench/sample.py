"""One sample from Python: CPU of a look at 8 GPUs, through gpulse, raw pynvml and nvitop; and from 1 to 64 GPUs.

Run as a child on a scripted machine: `python -m bench.sample TOOL LOOKS` prints CPU µs a sample.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

KEYS = (
    *("utilization", "memory_utilization", "memory_used", "memory_total", "memory_free", "memory_reserved"),
    *("temperature", "power_draw", "power_limit", "clock_sm", "clock_memory", "pstate", "throttle_reasons"),
)
TOOLS = ("pynvml by hand", "gpulse", "gpulse with names and users", "nvitop")


def by_hand() -> Callable[[], object]:
    """The same calls through nvidia-ml-py, nothing else."""
    import pynvml as nvml

    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]

    def sample() -> object:
        return [
            (
                nvml.nvmlDeviceGetUtilizationRates(handle),
                nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2),
                nvml.nvmlDeviceGetTemperature(handle, 0),
                nvml.nvmlDeviceGetPowerUsage(handle),
                nvml.nvmlDeviceGetEnforcedPowerLimit(handle),
                nvml.nvmlDeviceGetClockInfo(handle, 1),
                nvml.nvmlDeviceGetClockInfo(handle, 2),
                nvml.nvmlDeviceGetPerformanceState(handle),
                nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
                nvml.nvmlDeviceGetComputeRunningProcesses(handle),
                nvml.nvmlDeviceGetGraphicsRunningProcesses(handle),
                nvml.nvmlDeviceGetMPSComputeRunningProcesses(handle),
            )
            for handle in handles
        ]

    return sample


def by_gpulse(described: bool) -> Callable[[], object]:
    """A sampler that wants the same; `described` adds each process's user, name, CPU and host memory."""
    from gpulse.model.select import Wanted
    from gpulse.sampling.sampler import Sampler
    from gpulse.sources.nvidia.source import NvidiaSource

    people = ("pid", "name", "command", "user", "memory_used", "type", "cpu_percent", "host_memory", "running_time")
    gpu = KEYS if described else (*KEYS, "memory_unattributed")
    sampler = Sampler(NvidiaSource(), Wanted(gpu, people if described else None)).open()
    return sampler.read


def by_nvitop() -> Callable[[], object]:
    """nvitop's own snapshot of devices and processes, its one-second cache expired."""
    import nvitop

    devices = nvitop.Device.all()

    def sample() -> object:
        return [device.as_snapshot() for device in devices], [device.processes() for device in devices]

    return sample


def measure(tool: str, samples: int) -> float:
    """Return the median CPU of a sample in µs, after two to warm up."""
    made = {
        TOOLS[0]: by_hand,
        TOOLS[1]: lambda: by_gpulse(False),
        TOOLS[2]: lambda: by_gpulse(True),
        TOOLS[3]: by_nvitop,
    }
    sample = made[tool]()
    spent = []
    for turn in range(samples + 2):
        start = time.process_time()
        sample()
        if turn >= 2:
            spent.append((time.process_time() - start) * 1e6)
        if tool == "nvitop":
            time.sleep(1.05)  # its cache would answer the next sample
    return median(spent)


def child(tool: str, env: dict[str, str], samples: int) -> float:
    """Measure in a process of its own."""
    from bench.machine import BIN, ROOT

    command = [str(BIN / "python"), "-m", "bench.sample", tool, str(samples)]
    out = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return float(out)


def tables(rounds: int = 5) -> list[str]:
    """Return the Markdown tables of one run."""
    from bench.machine import machine

    spent: dict[str, list[float]] = {tool: [] for tool in TOOLS}
    with machine("dgx-h100x8", 8, 24) as env:
        for _ in range(rounds):
            for tool in TOOLS:
                spent[tool].append(child(tool, env, 3 if tool == "nvitop" else 100))
    base = median(spent[TOOLS[0]])
    out = [
        f"| one sample of 8 GPUs, 24 processes | CPU µs, median of {rounds} runs | x by hand |",
        "| --- | --- | --- |",
    ]
    out += [f"| {tool} | {median(taken):.0f} | {median(taken) / base:.2f} |" for tool, taken in spent.items()]
    out += ["", "| GPUs | gpulse, CPU µs per GPU |", "| --- | --- |"]
    for gpus in (1, 8, 64):
        with machine("dgx-h100x8", gpus, gpus) as env:
            taken = median(child(TOOLS[1], env, 100) for _ in range(rounds))
        out.append(f"| {gpus} | {taken / gpus:.0f} |")
    return out


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    print(measure(sys.argv[1], int(sys.argv[2])))
