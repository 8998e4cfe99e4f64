"""Processes on the scripted driver: their lists in every version, and what they use."""

from __future__ import annotations

from pathlib import Path

from .scenario import Clock, Scenario
from .test_fake_nvml import see

LISTS = """
def fetch(name, size, room):
    count, out = ctypes.c_uint(room), (ctypes.c_ubyte * (size * max(room, 1)))()
    status = getattr(n.nvmlLib, name)(gpu, ctypes.byref(count), out if room else None)
    return [status, count.value, bytes(out).hex() if not status else ""]
"""


def test_process_lists_in_the_record_of_each_version(tmp_path: Path) -> None:
    scenario = (
        Scenario()
        .gpu(0)
        .process(gpu=0, pid=7, memory="2 MiB")
        .process(gpu=0, pid=8, memory="unavailable", instance="3/1")
    )
    scenario.process(gpu=0, pid=9, memory=1, type="G").process(gpu=0, pid=10, memory=1, type="M")
    code = (
        LISTS
        + """
base = "nvmlDeviceGetComputeRunningProcesses"
say([fetch(base, 16, 0), fetch(base, 16, 2), fetch(base + "_v2", 24, 1), fetch(base + "_v3", 24, 5)[2][:96],
     [p.pid for p in n.nvmlDeviceGetGraphicsRunningProcesses(gpu)],
     [p.pid for p in n.nvmlDeviceGetMPSComputeRunningProcesses(gpu)],
     [(p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId)
      for p in n.nvmlDeviceGetComputeRunningProcesses(gpu)]])"""
    )
    size, old, small, new, graphics, mps, compute = see(scenario, tmp_path, code)
    assert size[:2] == [7, 2]
    assert small[:2] == [7, 2]
    assert old[2] == "07000000" + "00000000" + "0000200000000000" + "08000000" + "00000000" + "f" * 16
    assert new[:48] == "07000000" + "00000000" + "0000200000000000" + "f" * 16
    assert graphics == [9]
    assert mps == [10]
    assert compute == [[7, 2 << 20, 2**32 - 1, 2**32 - 1], [8, None, 3, 1]]
    scenario.driver(process_record=32)
    longer = see(scenario, tmp_path / "r535", LISTS + 'say(fetch("nvmlDeviceGetComputeRunningProcesses_v3", 32, 2))')
    assert longer[2][64:72] == "08000000"


def test_a_list_that_grows_between_size_query_and_fetch(tmp_path: Path) -> None:
    code = (
        LISTS
        + """
base = "nvmlDeviceGetComputeRunningProcesses_v3"
say([row[:2] for row in (fetch(base, 24, 0), fetch(base, 24, 1), fetch(base, 24, 41))])"""
    )
    assert see(Scenario.load("growing-list"), tmp_path / "more", code) == [[7, 1], [7, 41], [0, 41]]
    fewer = Scenario.load("h200-busy").gpu(0, processes__grow=-1)
    assert see(fewer, tmp_path / "fewer", code)[:2] == [[7, 1], [0, 0]]


def test_processes_come_and_go(tmp_path: Path) -> None:
    scenario = (
        Scenario()
        .gpu("0-1")
        .process(gpu="0-1", pid=7, memory=1, since="2s", until="5s")
        .process(gpu=1, pid="self", memory=1)
    )
    code = "say([[p.pid == os.getpid() or p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(g)] for g in gpus])"
    clock = Clock(tmp_path, 1)
    assert see(scenario, tmp_path, code, clock) == [[], [True]]
    clock.set(3)
    assert see(scenario, tmp_path, code, clock) == [[7], [7, True]]


def test_process_utilisation_is_newer_than_asked_or_not_found(h200: Scenario, tmp_path: Path) -> None:
    h200.process(gpu=0, pid=9, memory=1, sm=5, age="10s")
    seen = see(
        h200,
        tmp_path,
        """
def sample(since):
    found = ask(n.nvmlDeviceGetProcessUtilization, gpu, since)
    return found if type(found) is str else [(s.smUtil, s.memUtil) for s in found]
now = int(time.time() * 1e6)
count = ctypes.c_uint(0)
small = n.nvmlLib.nvmlDeviceGetProcessUtilization(gpu, None, ctypes.byref(count), ctypes.c_ulonglong(0))
say([sample(0), sample(now - 5_000_000), sample(now + 60_000_000), small, count.value])""",
    )
    assert seen == [[[83, 18], [5, 0]], [[83, 18]], "error 6", 7, 2]
