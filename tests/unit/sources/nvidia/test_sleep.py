"""GPUs that sleep are shown without being woken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

NVIDIA = "sys/bus/pci/drivers/nvidia"


def slot(root: Path, name: str, status: str) -> None:
    folder = root / NVIDIA / name
    (folder / "power").mkdir(parents=True)
    (folder / "power/runtime_status").write_text(f"{status}\n")
    (folder / "class").write_text("0x030000\n")
    information = root / "proc/driver/nvidia/gpus" / name / "information"
    information.parent.mkdir(parents=True)
    information.write_text("Model: \t\t NVIDIA GeForce RTX 4070 Laptop GPU\nGPU UUID: \t GPU-????????-????\n")


def two() -> Scenario:
    scenario = Scenario.load("laptop").driver(gpus=2).gpu(1, name="NVIDIA RTX 4000 Ada", temperature=50)
    return scenario.gpu(1, pci__bus_id="00000000:02:00.0", utilization__gpu=33, utilization__memory=3)


@pytest.mark.parametrize("arguments", [("--json",), ("--json", "--gpu", "0"), ("--json", "--gpu", "01:00.0")])
def test_a_gpu_that_sleeps_is_shown_without_one_call_to_the_driver(
    lab: Lab, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    answer = lab.run(Scenario.load("laptop"), *arguments, GPULSE_ROOT=str(tmp_path))
    (gpu,) = answer.gpus
    assert gpu["state"] == "asleep"
    assert gpu["name"] == "NVIDIA GeForce RTX 4070 Laptop GPU"
    assert gpu["pci_bus_id"] == "00000000:01:00.0"
    assert (gpu["utilization"], gpu["gaps"]["utilization"]) == (None, "asleep")
    assert "uuid" not in gpu
    assert answer.calls == {}


def test_a_glance_at_a_sleeping_gpu_says_asleep(lab: Lab, tmp_path: Path) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    answer = lab.run(Scenario.load("laptop"), GPULSE_ROOT=str(tmp_path))
    assert answer.code == 0
    assert "asleep" in answer.out
    assert answer.calls == {}


@pytest.mark.parametrize("status", ["active", "unsupported"])
def test_a_gpu_that_does_not_sleep_is_read(lab: Lab, tmp_path: Path, status: str) -> None:
    slot(tmp_path, "0000:01:00.0", status)
    (gpu,) = lab.run(Scenario.load("laptop"), "--json", GPULSE_ROOT=str(tmp_path)).gpus
    assert (gpu["state"], gpu["utilization"]) == ("ok", 7)


def test_a_gpu_that_wakes_up_is_read_from_then_on(lab: Lab, tmp_path: Path) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    seen = lab.see(
        Scenario.load("laptop"),
        f"""
over = sampler()
seen = [sample(over), sample(over)]
open({str(tmp_path / NVIDIA / "0000:01:00.0/power/runtime_status")!r}, "w").write("active")
seen += [sample(over), sample(over)]
say([snapshot["gpus"][0] for snapshot in seen])
""",
        GPULSE_ROOT=str(tmp_path),
    )
    assert [gpu["state"] for gpu in seen] == ["asleep", "asleep", "ok", "ok"]
    assert seen[0]["since"] == seen[1]["since"]
    assert "since" not in seen[3]
    assert [gpu["utilization"] for gpu in seen] == [None, None, 7, 7]


def test_beside_one_that_sleeps_the_other_is_read_and_the_sleeper_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    slot(tmp_path, "0000:02:00.0", "active")
    answer = lab.run(two(), "--json", GPULSE_ROOT=str(tmp_path))
    asleep, awake = answer.gpus
    assert (asleep["index"], asleep["state"], asleep["utilization"]) == (0, "asleep", None)
    assert (awake["index"], awake["state"], awake["utilization"]) == (1, "ok", 33)
    assert awake["name"] == "NVIDIA RTX 4000 Ada"
    assert answer.calls["nvmlDeviceGetHandleByIndex_v2"] == 0
    assert answer.calls["nvmlDeviceGetName"] == answer.calls["nvmlDeviceGetUtilizationRates"] == 1


def test_an_awake_gpu_keeps_its_numbers_while_the_sleeper_wakes(lab: Lab, tmp_path: Path) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    slot(tmp_path, "0000:02:00.0", "active")
    seen = lab.see(
        two(),
        f"""
over = sampler()
first = sample(over)
open({str(tmp_path / NVIDIA / "0000:01:00.0/power/runtime_status")!r}, "w").write("active")
say([first["gpus"], sample(over)["gpus"]])
""",
        GPULSE_ROOT=str(tmp_path),
    )
    assert [[gpu["state"] for gpu in gpus] for gpus in seen] == [["asleep", "ok"], ["ok", "ok"]]
    assert [gpu["utilization"] for gpu in seen[1]] == [7, 33]
    assert [gpu["index"] for gpu in seen[1]] == [0, 1]


def test_an_audio_function_of_the_driver_is_no_gpu(lab: Lab, tmp_path: Path) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    slot(tmp_path, "0000:01:00.1", "active")
    (tmp_path / NVIDIA / "0000:01:00.1/class").write_text("0x040300\n")
    answer = lab.run(Scenario.load("laptop"), "--json", GPULSE_ROOT=str(tmp_path))
    assert [gpu["state"] for gpu in answer.gpus] == ["asleep"]
    assert answer.calls == {}


def test_a_driver_that_cannot_be_opened_when_a_gpu_wakes_is_tried_again(lab: Lab, tmp_path: Path) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    slot(tmp_path, "0000:02:00.0", "active")
    seen = lab.see(
        two().fault(function="nvmlInit_v2", code="DRIVER_NOT_LOADED", since="1s", until="2s"),
        f"""
from gpulse.sources.nvidia import source
source._REOPEN_EVERY = 0.0
over = sampler()
seen = [sample(over)]
open({str(tmp_path / NVIDIA / "0000:01:00.0/power/runtime_status")!r}, "w").write("active")
for moment in (1.5, 3):
    at(moment)
    seen.append(sample(over))
say([[[gpu["state"] for gpu in snapshot["gpus"]], len(snapshot["errors"])] for snapshot in seen])
""",
        GPULSE_ROOT=str(tmp_path),
    )
    assert seen[0] == [["asleep", "ok"], 0]
    assert len(seen[1][0]) == 2
    assert seen[1][1] == 1
    assert seen[2] == [["ok", "ok"], 0]


def test_a_gpu_beside_a_sleeping_one_keeps_its_place_if_the_driver_does_not_tell_its_index(
    lab: Lab, tmp_path: Path
) -> None:
    slot(tmp_path, "0000:01:00.0", "suspended")
    slot(tmp_path, "0000:02:00.0", "active")
    scenario = two().fault(function="nvmlDeviceGetIndex", code="UNKNOWN")
    answer = lab.run(scenario, "--json", GPULSE_ROOT=str(tmp_path))
    assert [(gpu["index"], gpu["state"]) for gpu in answer.gpus] == [(0, "asleep"), (1, "ok")]
