"""Faults of the scripted driver: codes, lost GPUs, calls that hang, symbols that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .build import library
from .scenario import Clock, Scenario
from .test_fake_nvml import see


@pytest.mark.parametrize("code", [1, 2, 3, 4, 6, 9, 10, 13, 15, 16, 18, 25, 26, 999])
def test_any_function_returns_any_code(code: int, h200: Scenario, tmp_path: Path) -> None:
    h200.fault(function="nvmlDeviceGetTemperature", code=code)
    assert see(h200, tmp_path, "say([ask(n.nvmlDeviceGetTemperature, gpu, 0), n.nvmlDeviceGetPowerUsage(gpu)])") == [
        f"error {code}",
        690072,
    ]


def test_faults_choose_gpu_window_and_turn(tmp_path: Path) -> None:
    scenario = Scenario().gpu("0-1", power=1, temperature=2, pstate=3)
    scenario.fault(function="nvmlDeviceGetPower*", gpu=1, code="UNKNOWN")
    scenario.fault(function="nvmlDeviceGetTemperature", code="TIMEOUT", every=3)
    scenario.fault(function="nvmlDeviceGetPerformanceState", code="GPU_IS_LOST", since="5s", until="6s")
    clock = Clock(tmp_path, 5.5)
    seen = see(
        scenario,
        tmp_path,
        """
say([[ask(n.nvmlDeviceGetPowerUsage, g) for g in gpus], [ask(n.nvmlDeviceGetTemperature, gpu, 0) for _ in range(6)],
     ask(n.nvmlDeviceGetPerformanceState, gpu)])""",
        clock,
    )
    assert seen == [[1, "error 999"], [2, 2, "error 10", 2, 2, "error 10"], "error 15"]
    clock.set(6.0)
    assert see(scenario, tmp_path, "say(ask(n.nvmlDeviceGetPerformanceState, gpu))", clock) == 3


def test_a_key_may_be_an_error_and_a_function_name_a_key(tmp_path: Path) -> None:
    scenario = Scenario().gpu(0, power="error NO_PERMISSION", nvmlDeviceGetTemperatureThreshold="error UNKNOWN")
    scenario.gpu(0, cores=5, nvmlDeviceGetNumGpuCores=7)
    seen = see(
        scenario,
        tmp_path,
        """
say([ask(n.nvmlDeviceGetPowerUsage, gpu), ask(n.nvmlDeviceGetTemperatureThreshold, gpu, 0),
     n.nvmlDeviceGetNumGpuCores(gpu)])""",
    )
    assert seen == ["error 4", "error 999", 7]


def test_a_lost_gpu_keeps_its_handle(tmp_path: Path) -> None:
    code = "say([[type(g) is str, ask(n.nvmlDeviceGetName, g), ask(n.nvmlDeviceGetIndex, g)] for g in gpus])"
    seen = see(Scenario.load("lost"), tmp_path, code, Clock(tmp_path, 2.5))
    assert seen[2] == [False, "error 15", "error 15"]
    assert [row[2] for row in seen] == [0, 1, "error 15", 3]
    assert see(Scenario.load("no-permission"), tmp_path / "denied", "say([g for g in gpus if type(g) is str])") == [
        "error 4"
    ]


def test_a_hang_holds_only_its_own_thread(tmp_path: Path) -> None:
    scenario = Scenario.load("hang").fault(function="nvmlDeviceGetNumFans", hang="10ms")
    seen = see(
        scenario,
        tmp_path,
        """
stuck = threading.Thread(target=n.nvmlDeviceGetPowerUsage, args=(gpus[3],), daemon=True)
stuck.start()
others = [ask(n.nvmlDeviceGetPowerUsage, g) > 0 for i, g in enumerate(gpus) if i != 3]
say([stuck.is_alive(), others, n.nvmlDeviceGetTemperature(gpus[3], 0) > 0, ask(n.nvmlDeviceGetNumFans, gpu)])
sys.stdout.flush()
os._exit(0)""",
    )
    assert seen == [True, [True] * 7, True, 0]


def test_missing_symbols_are_not_in_the_library(h200: Scenario, tmp_path: Path) -> None:
    seen = see(
        h200.missing("nvmlDeviceGet*RunningProcesses_v3", "nvmlGpm*"),
        tmp_path,
        """
library = ctypes.CDLL("libnvidia-ml.so.1")
say([name for name in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlGpmSampleGet",
     "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetName") if hasattr(library, name)])""",
    )
    assert seen == ["nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetName"]
    assert library() != library(frozenset({"nvmlGpm*"}))
    assert library(frozenset({"nvmlGpm*"})) == library(frozenset({"nvmlGpm*"}))
