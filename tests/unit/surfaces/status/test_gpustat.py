"""The shape of `gpustat --json`: its keys, whole numbers, null for what is missing."""

from __future__ import annotations

import json

from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.select import EVERYTHING, Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.status import GPUSTAT
from gpulse.surfaces.status.gpustat import to_gpustat

MIB = 1 << 20


def test_the_shape_is_gpustats() -> None:
    process = Process(
        {"pid": 7, "name": "python", "command": "python train.py", "user": "ada", "memory_used": 1642 * MIB,
         "cpu_percent": 99.5, "host_memory": 5.0}
    )  # fmt: skip
    gpu = Gpu(
        {"index": 0, "uuid": "GPU-1", "name": "NVIDIA H200", "temperature": 62, "utilization": 97, "power_draw": 690.9,
         "power_limit": 700.0, "memory_used": 1651 * MIB, "memory_total": 143771 * MIB},
        {"fan_speed": "unsupported"},
        processes=(process,),
    )  # fmt: skip
    plain = json.loads(to_gpustat(Snapshot(1.5, (gpu,), Host({"name": "box"}), {"version": "580.1"})))
    assert plain["hostname"] == "box"
    assert plain["driver_version"] == "580.1"
    assert plain["query_time"].endswith(".500000")
    (told,) = plain["gpus"]
    assert told == {
        "index": 0, "uuid": "GPU-1", "name": "NVIDIA H200", "temperature.gpu": 62, "fan.speed": None,
        "utilization.gpu": 97, "utilization.enc": None, "utilization.dec": None, "power.draw": 690,
        "enforced.power.limit": 700, "memory.used": 1651, "memory.total": 143771,
        "processes": [
            {"username": "ada", "command": "python", "full_command": ["python", "train.py"], "gpu_memory_usage": 1642,
             "cpu_percent": 99.5, "cpu_memory_usage": 5, "pid": 7}
        ],
    }  # fmt: skip


def test_processes_that_nobody_may_list_are_null() -> None:
    gpu = Gpu({"index": 0}, {"processes": "denied"})
    assert json.loads(to_gpustat(Snapshot(0.0, (gpu,))))["gpus"][0]["processes"] is None


def test_only_what_it_shows_is_read() -> None:
    def told(wanted: Wanted) -> str:
        clock = ManualClock()
        sampler = Sampler(SimulatedSource(clock=clock.monotonic), wanted, clock=clock).open()
        clock.sleep(3.0)
        return to_gpustat(sampler.read())

    assert told(GPUSTAT) == told(EVERYTHING)
    assert "sm_active" not in GPUSTAT.gpu
