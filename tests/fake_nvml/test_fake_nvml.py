"""The scripted driver itself, seen through NVIDIA's own binding in child processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import build
from .build import BuildError, library
from .scenario import Clock, Scenario, calls

pytest.importorskip("pynvml")

PRELUDE = """
import json, os, sys, threading, time
import ctypes
import pynvml as n

def ask(function, *arguments):
    try:
        return function(*arguments)
    except n.NVMLError as error:
        return f"error {error.value}"

def say(value):
    print(json.dumps(value))

n.nvmlInit()
gpus = [ask(n.nvmlDeviceGetHandleByIndex, i) for i in range(n.nvmlDeviceGetCount())]
gpu = gpus[0] if gpus else None
"""


def see(scenario: Scenario, folder: Path, code: str, clock: Clock | None = None, prelude: str = PRELUDE) -> Any:
    """What the code says (a JSON value) on the scripted machine, with no call latency."""
    environment = scenario.write(folder) | {"FAKE_NVML_LATENCY": "none"} | (clock.environment if clock else {})
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "fake_nvml:" not in done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [name for name in Scenario.names() if name != "init-hang"])
def test_every_scenario_file_is_understood(name: str, tmp_path: Path) -> None:
    code = 'say(ask(getattr(n._LoadNvmlLibrary() or n.nvmlLib, "nvmlInit_v2")))'
    assert see(Scenario.load(name), tmp_path, code, prelude=PRELUDE.partition("n.nvmlInit()")[0]) in {0, 9, 18}


def test_values_of_the_recorded_card(h200: Scenario, tmp_path: Path) -> None:
    seen = see(
        h200,
        tmp_path,
        """
memory, old = n.nvmlDeviceGetMemoryInfo(gpu, n.nvmlMemory_v2), n.nvmlDeviceGetMemoryInfo(gpu)
rates = n.nvmlDeviceGetUtilizationRates(gpu)
pci = n.nvmlDeviceGetPciInfo(gpu)
say({
    "name": n.nvmlDeviceGetName(gpu), "serial": n.nvmlDeviceGetSerial(gpu), "bus": pci.busId, "device": pci.device,
    "driver": n.nvmlSystemGetDriverVersion(), "cuda": n.nvmlSystemGetCudaDriverVersion(),
    "memory": [memory.total, memory.reserved, memory.used, memory.free], "old": [old.total, old.used, old.free],
    "rates": [rates.gpu, rates.memory], "power": n.nvmlDeviceGetPowerUsage(gpu),
    "limits": n.nvmlDeviceGetPowerManagementLimitConstraints(gpu),
    "clocks": [n.nvmlDeviceGetClockInfo(gpu, k) for k in range(4)], "fan": ask(n.nvmlDeviceGetFanSpeed, gpu),
    "capability": n.nvmlDeviceGetCudaComputeCapability(gpu), "modes": n.nvmlDeviceGetEccMode(gpu),
    "memory clocks": n.nvmlDeviceGetSupportedMemoryClocks(gpu),
    "application video": ask(n.nvmlDeviceGetApplicationsClock, gpu, 3),
})""",
    )
    assert seen == {
        "name": "NVIDIA H200",
        "serial": "1650000000001",
        "bus": "00000000:00:06.0",
        "device": 6,
        "driver": "580.159.04",
        "cuda": 13000,
        "memory": [150754820096, 644939776, 1731002368, 148378877952],
        "old": [150754820096, 2375942144, 148378877952],
        "rates": [100, 23],
        "power": 690072,
        "limits": [200000, 700000],
        "clocks": [1515, 1515, 3201, 1530],
        "fan": "error 3",
        "capability": [9, 0],
        "modes": [1, 1],
        "memory clocks": [3201, 2201],
        "application video": "error 3",
    }


def test_zero_is_a_value_and_all_ones_a_sentinel(tmp_path: Path) -> None:
    code = """
rates = n.nvmlDeviceGetUtilizationRates(gpu)
say([n.nvmlDeviceGetPowerUsage(gpu), rates.gpu, n.nvmlDeviceGetTotalEnergyConsumption(gpu)])"""
    assert see(Scenario.load("zeros"), tmp_path / "zeros", code) == [0, 0, 0]
    assert see(Scenario.load("sentinels"), tmp_path / "ones", code) == [2**32 - 1, 2**32 - 1, 2**64 - 1]


def test_text_keeps_its_bytes(tmp_path: Path) -> None:
    seen = see(
        Scenario.load("garbage"),
        tmp_path,
        """
def raw(gpu):
    out = ctypes.create_string_buffer(96)
    n._nvmlGetFunctionPointer("nvmlDeviceGetName")(gpu, out, 96)
    return out.value.hex()
say([raw(g) for g in gpus])""",
    )
    names = [bytes.fromhex(name) for name in seen]
    assert names[0] == b"NVIDIA \xff\xfe H200\x80"
    assert names[1].startswith(b"\x1b[31m")
    assert b'"' in names[2]
    assert b"\\" in names[2]
    assert b"\n" in names[2]
    assert len(names[3]) == 95
    assert names[4] == b""


def test_waves_follow_the_clock(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    scenario = Scenario().gpu(
        0,
        power="steps(0:100 W, 2s:250 W)",
        temperature="ramp(40, 2)",
        energy="integral(power)",
        utilization__gpu="square(0, 100, 4s)",
        utilization__memory="sine(50, 50, 4s)",
        pcie__tx_bytes=f"counter({2**32 - 100}, 100)",
    )
    seen = see(
        scenario,
        tmp_path,
        f"""
import struct
def sample(seconds):
    with open({str(tmp_path / "clock")!r}, "r+b") as file:
        file.write(struct.pack("d", seconds))
    rates = n.nvmlDeviceGetUtilizationRates(gpu)
    wrapped = n.nvmlDeviceGetFieldValues(gpu, [n.NVML_FI_DEV_PCIE_COUNT_TX_BYTES])[0].value.uiVal
    return [n.nvmlDeviceGetPowerUsage(gpu), n.nvmlDeviceGetTemperature(gpu, 0), rates.gpu, rates.memory,
            n.nvmlDeviceGetTotalEnergyConsumption(gpu), wrapped]
say([sample(0), sample(1), sample(3)])""",
        clock,
    )
    assert seen == [
        [100000, 40, 0, 50, 0, 2**32 - 100],
        [100000, 42, 0, 100, 100000, 0],
        [250000, 46, 100, 0, 450000, 200],
    ]


def test_samples_reach_back_fourteen_seconds(h200: Scenario, tmp_path: Path) -> None:
    seen = see(
        h200,
        tmp_path,
        """
kind, samples = n.nvmlDeviceGetSamples(gpu, n.NVML_GPU_UTILIZATION_SAMPLES, 0)
later = ask(n.nvmlDeviceGetSamples, gpu, n.NVML_GPU_UTILIZATION_SAMPLES, samples[-1].timeStamp + 10**9)
gaps = {b.timeStamp - a.timeStamp for a, b in zip(samples, samples[1:])}
say([kind, len(samples), {s.sampleValue.uiVal for s in samples} == {100}, max(gaps) - 200_000 < 10, later])""",
    )
    assert seen == [1, 71, True, True, "error 6"]


def test_fields_answer_one_by_one(h200: Scenario, tmp_path: Path) -> None:
    h200.gpu(0, power__average="error NO_PERMISSION", field__155=12, field__156=1.5)
    seen = see(
        h200,
        tmp_path,
        """
fields = n.nvmlDeviceGetFieldValues(gpu, [186, 185, 82, 138, 155, 156, 100000])
say([[f.nvmlReturn, f.valueType, f.value.dVal if f.valueType == 0 else f.value.ullVal] for f in fields])""",
    )
    assert seen == [[0, 1, 669082], [4, 1, 0], [0, 1, 51], [3, 3, 0], [0, 3, 12], [0, 0, 1.5], [2, 3, 0]]


def test_gpm_gives_the_mean_between_two_samples(tmp_path: Path) -> None:
    scenario = Scenario().gpu(0, gpm=1, gpm__sm="steps(0:0, 2s:100)", gpm__tensor="ramp(0, 10)", gpm__dram=30).gpu(1)
    seen = see(
        scenario,
        tmp_path,
        f"""
import struct
def at(seconds):
    with open({str(tmp_path / "clock")!r}, "r+b") as file:
        file.write(struct.pack("d", seconds))
    sample = n.nvmlGpmSampleAlloc()
    n.nvmlGpmSampleGet(gpu, sample)
    return sample
def metrics(first, second, *ids):
    query = n.c_nvmlGpmMetricsGet_t(version=1, numMetrics=len(ids), sample1=first, sample2=second)
    for slot, metric in zip(query.metrics, ids):
        slot.metricId = metric
    n.nvmlGpmMetricsGet(query)
    return [[m.nvmlReturn, m.value] for m in query.metrics[:len(ids)]]
first, second = at(0), at(4)
nothing = metrics(second, second, 10)[0][1]
say([metrics(first, second, 2, 5, 10, 4, 300), nothing != nothing, n.nvmlGpmQueryDeviceSupport(gpu).isSupportedDevice,
     n.nvmlGpmQueryDeviceSupport(gpus[1]).isSupportedDevice, ask(n.nvmlGpmSampleGet, gpus[1], first)])""",
        Clock(tmp_path),
    )
    assert seen == [[[0, 50], [0, 20], [0, 30], [0, 0], [2, 0]], True, 1, 0, "error 3"]


def test_mig_instances(tmp_path: Path) -> None:
    scenario = Scenario.load("a100-mig").instance(
        gpu=0, index=5, gi=9, ci=1, profile="1c.1g.10gb", memory__total="10 GiB", memory__used=0
    )
    seen = see(
        scenario,
        tmp_path,
        """
slots = [ask(n.nvmlDeviceGetMigDeviceHandleByIndex, gpu, i) for i in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu))]
def describe(mig):
    parts = n.nvmlDeviceGetAttributes_v2(mig)
    return [n.nvmlDeviceGetName(mig), n.nvmlDeviceGetGpuInstanceId(mig), n.nvmlDeviceGetComputeInstanceId(mig),
            n.nvmlDeviceGetMemoryInfo(mig).total >> 30, parts.gpuInstanceSliceCount, parts.memorySizeMB,
            len(n.nvmlDeviceGetComputeRunningProcesses(mig)), n.nvmlDeviceGetUUID(mig)[:4],
            n.nvmlDeviceIsMigDeviceHandle(mig).value,
            ask(n.nvmlDeviceGetUtilizationRates, mig)]
migs = [mig for mig in slots if type(mig) is not str]
parent = n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(migs[0])
again = n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(migs[1]))
say([[type(mig) is str and mig for mig in slots], describe(migs[0]), describe(migs[2])[:4], n.nvmlDeviceGetMigMode(gpu),
     n.nvmlDeviceGetIndex(parent), n.nvmlDeviceGetGpuInstanceId(again), ask(n.nvmlDeviceGetUtilizationRates, gpu),
     ask(n.nvmlDeviceGetGpuInstanceId, gpu), len(n.nvmlDeviceGetComputeRunningProcesses(gpu))])""",
    )
    slots, first, third, mode, parent, again, rates, wrong, processes = seen
    assert slots == [False, False, False, "error 6", "error 6", False, "error 6"]
    assert first == ["NVIDIA A100-SXM4-80GB MIG 3g.40gb", 1, 0, 40, 3, 40960, 1, "MIG-", 1, "error 3"]
    assert third == ["NVIDIA A100-SXM4-80GB MIG 1g.10gb", 13, 0, 10]
    assert (mode, parent, again, rates, wrong, processes) == ([1, 1], 0, 5, "error 3", "error 2", 2)


def test_gpm_of_a_mig_instance(tmp_path: Path) -> None:
    seen = see(
        Scenario.load("h100-mig").gpu(0, gpm__latch=0),
        tmp_path,
        """
first, second = n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()
n.nvmlGpmMigSampleGet(gpu, 1, first)
n.nvmlGpmMigSampleGet(gpu, 1, second)
query = n.c_nvmlGpmMetricsGet_t(version=1, numMetrics=1, sample1=first, sample2=second)
query.metrics[0].metricId = 2
n.nvmlGpmMetricsGet(query)
say([query.metrics[0].value, ask(n.nvmlGpmMigSampleGet, gpu, 9, first)])""",
    )
    assert seen == [71, "error 6"]


def test_events_fall_due(tmp_path: Path) -> None:
    scenario = (
        Scenario().gpu("0-2").xid(gpu=2, code=79, at="3s").xid(gpu=1, code=31, at="1s").xid(gpu=0, code=13, at="1s")
    )
    seen = see(
        scenario,
        tmp_path,
        f"""
import struct
events = n.nvmlEventSetCreate()
for g in gpus[1:]:
    n.nvmlDeviceRegisterEvents(g, n.nvmlEventTypeXidCriticalError, events)
def sample(seconds):
    with open({str(tmp_path / "clock")!r}, "r+b") as file:
        file.write(struct.pack("d", seconds))
    event = ask(n.nvmlEventSetWait_v2, events, 0)
    return event if type(event) is str else [n.nvmlDeviceGetIndex(event.device), event.eventType, event.eventData]
say([sample(0), sample(2), sample(2), sample(3), sample(9), n.nvmlEventSetFree(events)])""",
        Clock(tmp_path),
    )
    assert seen == ["error 10", [1, 8, 31], "error 10", [2, 8, 79], "error 10", None]


def test_nvlink_and_lookups(tmp_path: Path) -> None:
    scenario = Scenario.load("dgx-h100x8").gpu(3, nvlink__state__5=0)
    seen = see(
        scenario,
        tmp_path,
        """
say([[n.nvmlDeviceGetNvLinkState(gpus[3], i) for i in (4, 5)], n.nvmlDeviceGetNvLinkVersion(gpu, 0),
     n.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, 0), n.nvmlDeviceGetFieldValues(gpu, [91])[0].value.uiVal,
     [n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(b))
      for b in ("00000000:43:00.0", "0000:43:00.0", "43:00.0")],
     n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(gpus[5]))),
     n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleBySerial("1652000000006")),
     ask(n.nvmlDeviceGetHandleByUUID, "GPU-nobody")])""",
    )
    assert seen == [[1, 0], 7, 2, 18, [1, 1, 1], 5, 6, "error 6"]


def test_versions_are_checked_and_initialisation_counted(h200: Scenario, tmp_path: Path) -> None:
    seen = see(
        h200,
        tmp_path,
        """
wrong = n.c_nvmlMemory_v2_t(version=1)
mismatch = n.nvmlLib.nvmlDeviceGetMemoryInfo_v2(gpu, ctypes.byref(wrong))
stranger = n.nvmlLib.nvmlDeviceGetPowerUsage(ctypes.c_void_p(4096), ctypes.byref(ctypes.c_uint()))
n.nvmlInit()
n.nvmlShutdown()
still = n.nvmlDeviceGetCount()
n.nvmlShutdown()
say([mismatch, stranger, still, n.nvmlLib.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint())),
     n.nvmlLib.nvmlShutdown()])""",
    )
    assert seen == [25, 2, 1, 1, 1]


def test_calls_are_counted_once_across_fork_and_exit(h200: Scenario, tmp_path: Path) -> None:
    see(
        h200,
        tmp_path,
        """
for _ in range(5):
    n.nvmlDeviceGetPowerUsage(gpu)
child = os.fork()
if not child:
    n.nvmlDeviceGetTemperature(gpu, 0)
    n.nvmlShutdown()
    os._exit(0)
os.waitpid(child, 0)
n.nvmlDeviceGetPowerUsage(gpu)
say(None)""",
    )
    count = calls(tmp_path)
    assert count["nvmlDeviceGetPowerUsage"] == 6
    assert count["nvmlDeviceGetTemperature"] == 1
    assert count["nvmlInitWithFlags"] == 1
    assert count["nvmlShutdown"] == 1


def test_fork_can_break_the_connection(h200: Scenario, tmp_path: Path) -> None:
    h200.driver(fork="error UNKNOWN")
    seen = see(
        h200,
        tmp_path,
        """
def in_child(prepare):
    out, back = os.pipe()
    if not os.fork():
        prepare()
        os.write(back, str(ask(n.nvmlDeviceGetPowerUsage, gpu)).encode())
        os._exit(0)
    return os.read(out, 100).decode()
say([in_child(lambda: None), in_child(n.nvmlInit), n.nvmlDeviceGetPowerUsage(gpu)])""",
    )
    assert seen == ["error 999", "690072", 690072]


def test_latency_is_spent_as_cpu_or_as_waiting(tmp_path: Path) -> None:
    scenario = (
        Scenario()
        .gpu(0, power=1, pcie__tx=1)
        .latency(nvmlDeviceGetPowerUsage=200_000, nvmlDeviceGetPcieThroughput="wait 200000")
    )
    environment = scenario.write(tmp_path)
    code = (
        PRELUDE
        + """
def cost(function, *arguments):
    wall, cpu = time.perf_counter(), time.thread_time()
    function(*arguments)
    return [time.perf_counter() - wall, time.thread_time() - cpu]
say([cost(n.nvmlDeviceGetPowerUsage, gpu), cost(n.nvmlDeviceGetPcieThroughput, gpu, 0)])"""
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    busy, waiting = json.loads(done.stdout)
    assert waiting[0] >= 0.2
    assert busy[1] > waiting[1]  # no number of seconds: on a busy machine both take longer


def test_a_mistake_in_a_scenario_is_named(tmp_path: Path) -> None:
    environment = Scenario().gpu(0, power="error NO_SUCH_CODE").write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "scenario.ini:2: bad value" in done.stderr


def test_threads_share_the_driver(tmp_path: Path) -> None:
    see(
        Scenario.load("dgx-h100x8"),
        tmp_path,
        """
def work():
    for _ in range(200):
        for g in gpus:
            n.nvmlDeviceGetPowerUsage(g)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
say(None)""",
    )
    assert calls(tmp_path)["nvmlDeviceGetPowerUsage"] == 8 * 200 * 8


def test_without_a_compiler_the_reason_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(build, "BUILDS", tmp_path)
    with pytest.raises(BuildError, match=r"^the fake NVIDIA driver needs a C compiler; not found: no-such-compiler$"):
        library()
