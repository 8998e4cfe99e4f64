"""Machines to look at: the demo at a standing clock, and the odd ones."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from gpulse.model.catalog import GPU_METRICS, Gpu, Host, Process
from gpulse.model.metric import Number
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.status import GLANCE, PROCESSES

if TYPE_CHECKING:
    from gpulse.model.metric import Value

NOW = 1_700_000_000.0
_EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\n漢字かな한글 e\u0301 " * 2
_HOST = Host({"name": "box", "load": (1.5, 1.0, 0.5), "memory_used": 40 << 30, "memory_total": 1024 << 30})
_DRIVER = {"version": "580.159.04", "cuda": "13.0"}


@functools.cache
def demo() -> Snapshot:
    """Return the demo machine three seconds into its life."""
    clock = ManualClock(NOW)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), GLANCE | PROCESSES, clock=clock).open()
    clock.sleep(3.0)
    return sampler.read()


def machine(count: int) -> Snapshot:
    """Return the demo machine with that many GPUs."""
    gpus = demo().gpus
    rows = tuple(gpus[at % len(gpus)].replace(index=at) for at in range(count))
    return Snapshot(demo().time, rows, demo().host, demo().driver)


def single(at: int) -> Snapshot:
    """Return the demo machine with one of its GPUs."""
    return Snapshot(demo().time, (demo().gpus[at],), demo().host, demo().driver)


def divided(beside: int = 0) -> Snapshot:
    """Return a machine with a GPU in MIG mode, and others beside it."""
    parts = tuple(
        Gpu(
            {"index": at, "name": f"MIG {size}g.{size * 10}gb", "memory_used": used << 30, "memory_total": (size * 10) << 30,
             "memory_percent": 10.0 * used / size, "sm_active": 12.5 * at},
            {"utilization": "unsupported"},
            processes=(Process({"pid": 70 + at, "user": "ada", "name": "python", "memory_used": used << 30}),),
        )
        for at, (size, used) in enumerate(((3, 21), (2, 0), (1, 10)))
    )  # fmt: skip
    whole: dict[str, Value] = {"index": 0, "name": "NVIDIA A100-SXM4-80GB", "memory_used": 31 << 30, "memory_total": 80 << 30,
             "memory_percent": 38.8, "temperature": 44, "power_draw": 180.0, "power_limit": 400.0, "mig_mode": True}  # fmt: skip
    gpu = Gpu(whole, {"utilization": "unsupported"}, instances=parts)
    return Snapshot(NOW, (gpu, *machine(beside + 1).gpus[1:]), _HOST, _DRIVER)


def troubled() -> Snapshot:
    """Return a machine where every kind of trouble has a row, and a healthy GPU between."""

    def name(index: int) -> dict[str, Value]:
        return {"index": index, "name": "NVIDIA H100 80GB HBM3"}

    denied = dict.fromkeys(("utilization", "memory_used", "temperature"), "denied")
    failed = dict.fromkeys(("utilization", "memory_used", "temperature"), "failed")
    gpus = (
        demo().gpus[0],
        Gpu(name(1), state="lost", since=NOW - 725),
        Gpu({**name(2), "xid_last": 79}, state="lost", since=NOW),
        Gpu(name(3), state="timeout", since=NOW - 45),
        Gpu(name(4), state="asleep", since=NOW - 90_000),
        Gpu(name(5), denied),  # type: ignore[arg-type]
        Gpu(name(6), failed),  # type: ignore[arg-type]
        Gpu({**name(7), "memory_used": 40 << 30, "memory_total": 80 << 30, "memory_percent": 50.0,
             "memory_unattributed": 40 << 30, "ecc_uncorrected": 2, "temperature": 91,
             "throttle_reasons": ("hw_slowdown", "hw_thermal_slowdown"), "clock_sm": 345}),
    )  # fmt: skip
    problems = (Problem("processes", "the driver's process ids belong to the host.", "Start with --pid=host."),)
    return Snapshot(NOW, gpus, _HOST, _DRIVER, problems)


def zeros() -> Snapshot:
    """Return a GPU whose every number is 0."""
    values: dict[str, Value] = {key: 0 for key, metric in GPU_METRICS.items() if isinstance(metric, Number)}
    gpu = Gpu({**values, "name": "Zero", "memory_total": 80 << 30, "throttle_reasons": ()})
    return Snapshot(NOW, (gpu,), _HOST, _DRIVER)


def hostile() -> Snapshot:
    """Return a machine whose every name tries to act on the terminal."""
    process = Process({"pid": 1, "user": _EVIL, "name": _EVIL, "command": _EVIL, "memory_used": 1 << 30})
    values: dict[str, Value] = {"name": _EVIL, "utilization": 5, "memory_used": 2 << 30, "memory_total": 8 << 30}
    gpus = tuple(
        Gpu({**values, "index": at, "throttle_reasons": (_EVIL,)}, processes=(process, process)) for at in range(3)
    )
    return Snapshot(NOW, gpus, Host({"name": _EVIL}), {"version": _EVIL}, (Problem(_EVIL, _EVIL, _EVIL),))


def empty() -> Snapshot:
    """Return a machine without GPUs."""
    return Snapshot(NOW, (), _HOST, _DRIVER)
