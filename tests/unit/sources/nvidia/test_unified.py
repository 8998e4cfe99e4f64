"""GPUs that share the machine's memory, and Jetson boards whose numbers the kernel has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

MIB = 1 << 20
TOTAL, AVAILABLE = 125_000 * 1024, 80_000 * 1024


def tree(folder: Path, **files: str) -> str:
    """A root with /proc/meminfo and these files."""
    contents = {"proc/meminfo": f"MemTotal: {TOTAL // 1024} kB\nMemAvailable: {AVAILABLE // 1024} kB\n"} | files
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return str(folder)


def gpu_of(lab: Lab, scenario: Scenario, root: str) -> Any:
    answer = lab.run(scenario, "--json", GPULSE_ROOT=root)
    assert (answer.code, answer.err) == (0, "")
    return answer.gpus[0]


@pytest.mark.parametrize("said", ["error NOT_SUPPORTED", "0"])
def test_a_gpu_without_memory_of_its_own_has_the_machines(lab: Lab, tmp_path: Path, said: str) -> None:
    scenario = Scenario.load("gb10-unified").gpu(0, memory__total=said, memory__used=said)
    gpu = gpu_of(lab, scenario, tree(tmp_path))
    assert gpu["memory_unified"] is True
    assert (gpu["memory_total"], gpu["memory_used"]) == (TOTAL, 21504 * MIB)
    assert gpu.get("memory_unattributed") is None
    assert (gpu["pcie_gen"], gpu["pcie_rx"]) == (None, None)
    assert gpu["utilization"] == 96


def test_numbers_the_driver_has_are_kept(lab: Lab, tmp_path: Path) -> None:
    scenario = Scenario.load("gb10-unified").gpu(0, memory__total="119 GiB", memory__used="30 GiB")
    gpu = gpu_of(lab, scenario, tree(tmp_path))
    assert (gpu["memory_total"], gpu["memory_used"], gpu["memory_unified"]) == (119 << 30, 30 << 30, True)


def test_a_discrete_card_with_the_same_error_stays_unknown(lab: Lab, tmp_path: Path) -> None:
    scenario = Scenario.load("h200-idle").gpu(0, memory__total="error NOT_SUPPORTED")
    gpu = gpu_of(lab, scenario, tree(tmp_path))
    assert gpu["memory_unified"] is False
    for key in ("memory_total", "memory_used"):
        assert (gpu[key], gpu["gaps"][key]) == (None, "unsupported")


JETSON = {
    "sys/devices/platform/gpu.0/load": "423",
    "sys/class/thermal/thermal_zone0/type": "CPU-therm",
    "sys/class/thermal/thermal_zone0/temp": "71000",
    "sys/class/thermal/thermal_zone1/type": "GPU-therm",
    "sys/class/thermal/thermal_zone1/temp": "46500",
    "sys/class/devfreq/17000000.ga10b/cur_freq": "918000000",
}


def test_a_jetson_shows_what_its_kernel_says(lab: Lab, tmp_path: Path) -> None:
    gpu = gpu_of(lab, Scenario.load("orin"), tree(tmp_path, **JETSON))
    assert (gpu["utilization"], gpu["temperature"], gpu["clock_sm"]) == (42.3, 46.5, 918)
    assert (gpu["memory_total"], gpu["memory_unified"]) == (TOTAL, True)
    assert "utilization" not in gpu["gaps"]


def test_a_jetson_whose_driver_says_0_shows_what_its_kernel_says(lab: Lab, tmp_path: Path) -> None:
    scenario = Scenario.load("orin").gpu(0, **{"utilization.gpu": 0, "utilization.memory": 0, "temperature": 0})
    gpu = gpu_of(lab, scenario, tree(tmp_path, **JETSON))
    assert (gpu["utilization"], gpu["temperature"]) == (42.3, 46.5)


def test_a_jetson_whose_processes_cannot_be_listed_does_not_claim_that_no_memory_is_used(
    lab: Lab, tmp_path: Path
) -> None:
    gpu = gpu_of(lab, Scenario.load("orin"), tree(tmp_path, **JETSON))
    assert gpu["memory_used"] in (None, TOTAL - AVAILABLE)


def test_a_sensor_whose_rail_is_off_is_no_temperature(lab: Lab, tmp_path: Path) -> None:
    files = JETSON | {"sys/class/thermal/thermal_zone1/temp": "-256000", "sys/devices/platform/gpu.0/load": "0"}
    gpu = gpu_of(lab, Scenario.load("orin"), tree(tmp_path, **files))
    assert gpu["temperature"] is None
    assert gpu["utilization"] == 0


def test_a_jetson_whose_kernel_says_nothing_has_gaps(lab: Lab, tmp_path: Path) -> None:
    gpu = gpu_of(lab, Scenario.load("orin"), tree(tmp_path))
    assert (gpu["utilization"], gpu["gaps"]["utilization"]) == (None, "unsupported")


@pytest.mark.parametrize(("gen", "width", "shown"), [(1, 1, False), (5, 16, True)])
def test_the_placeholder_link_of_a_gpu_on_the_chip_of_its_cpu_is_not_shown(
    lab: Lab, gen: int, width: int, shown: bool
) -> None:
    link = {"pcie__gen": gen, "pcie__width": width, "pcie__gen__max": gen, "pcie__width__max": width}
    scenario = Scenario.load("gb10-unified").gpu(0, **link)
    (gpu,) = lab.see(scenario, "say(sample(sampler()))")["gpus"]
    for key in ("pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max"):
        assert (gpu.get(key) is not None) is shown
        assert (gpu["gaps"].get(key) == "unsupported") is not shown
