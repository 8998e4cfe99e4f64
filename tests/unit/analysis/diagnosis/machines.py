"""Made-up machines for the rules: a GPU whose metrics are numbers or functions of the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Verdict

GIB = 1 << 30
START = 1_700_000_000.0
At = Callable[[float], Any]

CARD = {
    "name": "NVIDIA H200", "memory_total": 140 * GIB, "memory_reserved": GIB, "power_limit": 700.0, "power_default_limit": 700.0,
    "clock_sm": 1980, "clock_sm_max": 1980, "temperature": 50, "temperature_limit": 87, "pcie_gen": 5, "pcie_width": 16,
    "pcie_gen_max": 5, "pcie_width_max": 16, "pcie_rx": 20e6, "pcie_tx": 5e6, "nvlink_rx": 0, "nvlink_tx": 0,
    "utilization": 100, "memory_utilization": 30, "graphics_active": 100, "sm_active": 95, "sm_occupancy": 35, "tensor_active": 50,
    "dram_active": 33, "fp64_active": 0, "fp32_active": 2, "fp16_active": 0, "integer_active": 15, "power_draw": 690,
    "memory_used": 20 * GIB, "throttle_reasons": (),
}  # fmt: skip
QUIET = {
    "utilization": 0, "memory_utilization": 0, "graphics_active": 0, "sm_active": 0, "sm_occupancy": 0, "tensor_active": 0,
    "dram_active": 0, "fp32_active": 0, "integer_active": 0, "power_draw": 120,
}  # fmt: skip
COUNTERS = (
    "graphics_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp64_active", "fp32_active", "fp16_active",
    "integer_active", "nvlink_rx", "nvlink_tx",
)  # fmt: skip
PROCESS = {
    "pid": 4242, "name": "python", "command": "python train.py", "user": "ada", "memory_used": 20 * GIB, "cpu_percent": 100.0,
    "tree_cpu_percent": 100.0, "children": 0, "running_time": 4000.0, "parent": 77,
}  # fmt: skip
HOST = {"cpu_count": 16, "cpu_percent": 7.0, "iowait": 0.0, "disk_read": 0, "disk_write": 0, "net_rx": 0}


def now(values: Mapping[str, Any], second: float) -> dict[str, Any]:
    """Work out functions of time, and leave out what is None."""
    found = {key: value(second) if callable(value) else value for key, value in values.items()}
    return {key: value for key, value in found.items() if value is not None}


def gpu_at(
    second: float, index: int, values: Mapping[str, Any], processes: Sequence[Mapping[str, Any]] | At, state: str = "ok"
) -> Gpu:
    there = processes(second) if callable(processes) else processes
    return Gpu(
        now({**CARD, "index": index, "uuid": f"GPU-{index}", **values}, second),
        state=state,  # type: ignore[arg-type]
        processes=tuple(Process(now({**PROCESS, **process}, second)) for process in there),
    )


def samples(
    *gpus: Mapping[str, Any],
    seconds: float = 30.0,
    interval: float = 0.5,
    host: Mapping[str, Any] | None = None,
) -> list[Snapshot]:
    """Return snapshots of GPUs; `processes` in a GPU lists its processes, `state` is a word or a function of the second."""
    found = []
    for step in range(round(seconds / interval)):
        second = step * interval
        built = []
        for index, given in enumerate(gpus):
            values = {key: value for key, value in given.items() if key not in ("processes", "state")}
            state = given.get("state", "ok")
            built.append(
                gpu_at(
                    second, index, values, given.get("processes", ({},)), state(second) if callable(state) else state
                )
            )
        found.append(Snapshot(START + second, tuple(built), Host(now({**HOST, **(host or {})}, second))))
    return found


def judged(*gpus: Mapping[str, Any], **options: Any) -> Verdict:
    """Return the verdict of the first GPU."""
    return diagnose(samples(*gpus, **options))[0]


def keys(verdict: Verdict) -> list[str]:
    """Return the key of a verdict and of what was seen beside it."""
    return [verdict.key, *(one.key for one in verdict.also)]
