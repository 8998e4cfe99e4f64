"""GPUs divided into MIG instances: rows of their own, with their memory, activity and processes."""

from __future__ import annotations

import pytest

from gpulse.sources.base import DeviceSample, Facts, Listing
from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

GIB = 1 << 30


def test_each_instance_is_a_row_with_its_own_memory(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("a100-mig"), "--json").gpus
    rows = gpu["instances"]
    assert [row["name"] for row in rows] == ["MIG 3g.40gb", "MIG 2g.20gb", "MIG 1g.10gb"]
    assert [(row["gpu_instance"], row["compute_instance"]) for row in rows] == [(1, 0), (5, 0), (13, 0)]
    assert [(row["memory_used"], row["memory_total"]) for row in rows] == [
        (12 * GIB, 40 * GIB), (9 * GIB, 20 * GIB), (0, 10 * GIB),
    ]  # fmt: skip
    assert all(row["uuid"].startswith("MIG-") for row in rows)
    assert gpu["memory_used"] == 21 * GIB
    assert (gpu["utilization"], gpu["gaps"]["utilization"]) == (None, "unsupported")
    assert gpu["mig_mode"] is True


def test_a_process_stands_under_its_instance_and_nowhere_else(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("a100-mig"), "--json").gpus
    assert gpu["processes"] == []
    held = [[process["memory_used"] >> 20 for process in row["processes"]] for row in gpu["instances"]]
    assert held == [[12000], [9000], []]
    assert gpu["instances"][0]["memory_unattributed"] == 12 * GIB - (12000 << 20)
    shown = lab.run(Scenario.load("a100-mig"), "-p").out
    assert "MIG 2g.20gb" in shown
    assert "0:1 " in shown


def test_a_process_in_no_instance_stands_under_the_gpu(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("a100-mig").process(gpu=0, pid=1, memory="1 GiB"), "--json").gpus
    assert [process["pid"] for process in gpu["processes"]] == [1]


def test_activity_is_told_for_each_instance(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("h100-mig"), "--json").gpus
    first, second = gpu["instances"]
    assert (first["sm_active"], first["tensor_active"], first["dram_active"]) == (71, 44, 35)
    assert (second["sm_active"], second["tensor_active"], second["dram_active"]) == (0, 0, 0)
    assert (gpu["sm_active"], gpu["gaps"]["sm_active"]) == (None, "unsupported")
    assert "SM 71 %" in lab.run(Scenario.load("h100-mig")).out


def test_instances_without_gpm_have_gaps_and_no_zeros(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("a100-mig"), "--json").gpus
    for row in gpu["instances"]:
        assert (row["sm_active"], row["gaps"]["sm_active"]) == (None, "unsupported")


def test_pcie_traffic_of_a_divided_gpu_comes_from_its_counters(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("h100-mig"), "--json").gpus
    assert gpu["pcie_rx"] == pytest.approx(900e6, rel=0.3)


def test_a_mig_uuid_in_cuda_visible_devices_names_the_instance(lab: Lab) -> None:
    two = Scenario.load("a100-mig").driver(gpus=2)
    for gpu in lab.run(two, "--json").gpus:
        for row in gpu.get("instances", []):
            answer = lab.run(two, "--json", "--gpu", "visible", CUDA_VISIBLE_DEVICES=row["uuid"])
            assert [chosen["uuid"] for chosen in answer.gpus] == [row["uuid"]]
    assert lab.run(two, "--json", "--gpu", "visible", CUDA_VISIBLE_DEVICES="MIG-none").gpus == []


def test_one_instance_that_fails_leaves_the_others(lab: Lab) -> None:
    scenario = Scenario.load("a100-mig").instance(
        gpu=0, index=3, gi=14, ci=0, profile="1g.10gb", memory__total="error UNKNOWN", memory__used="error UNKNOWN"
    )
    (gpu,) = lab.run(scenario, "--json").gpus
    assert [row["memory_used"] for row in gpu["instances"]] == [12 * GIB, 9 * GIB, 0, None]
    assert gpu["instances"][3]["gaps"]["memory_used"] == "failed"


def test_instances_are_found_even_if_the_first_question_for_them_failed(lab: Lab) -> None:
    scenario = Scenario.load("a100-mig").fault(function="nvmlDeviceGetMigMode", gpu=0, code="TIMEOUT", until="1s")
    counts = lab.see(
        scenario,
        """
over = sampler(slow_every=0)
seen = []
for moment in (0, 2, 3):
    at(moment)
    seen.append(len(sample(over)["gpus"][0].get("instances", [])))
say(seen)
""",
    )
    assert counts[-1] == 3


def test_instances_of_a_lost_gpu_are_not_shown_as_living(lab: Lab) -> None:
    seen = lab.see(
        Scenario.load("a100-mig").fault(function="*", gpu=0, code="GPU_IS_LOST", since="1s"),
        "over = sampler()\nsample(over)\nat(2)\nsay(sample(over)['gpus'][0])\n",
    )
    assert seen["state"] == "lost"
    assert "instances" not in seen


def test_instances_that_come_and_go_are_noticed(lab: Lab) -> None:
    """They are looked for every few seconds; what stays is not asked for its profile again, and what it holds is freed at the end."""
    scenario = Scenario.load("h100-mig").fault(
        function="nvmlDeviceGetMigDeviceHandleByIndex", gpu=0, code="NOT_FOUND", since="1s", until="2s"
    )
    answer = lab.ask(
        scenario,
        """
from gpulse.sources.nvidia import device
device._INSTANCES_EVERY = 0.0, 0.0
over = sampler(slow_every=0)
seen = []
for moment in (0, 0.5, 1.5, 3):
    at(moment)
    seen.append([part["uuid"] for part in sample(over)["gpus"][0].get("instances", [])])
over.close()
say(seen)
""",
    )
    first, same, none, again = answer.json
    assert first == same == again != []
    assert none == []
    assert answer.calls["nvmlDeviceGetGpuInstanceId"] == 2 * len(first)
    assert answer.calls["nvmlGpmSampleAlloc"] == answer.calls["nvmlGpmSampleFree"]


@pytest.mark.parametrize("function", ["nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"])
def test_instances_stay_while_the_driver_cannot_tell(lab: Lab, function: str) -> None:
    scenario = Scenario.load("h100-mig").fault(function=function, gpu=0, code="UNKNOWN", since="1s", until="2s")
    first, same = lab.see(
        scenario,
        """
from gpulse.sources.nvidia import device
device._INSTANCES_EVERY = 0.0, 0.0
over = sampler(slow_every=0)
seen = []
for moment in (0, 1.5):
    at(moment)
    seen.append([part["uuid"] for part in sample(over)["gpus"][0].get("instances", [])])
say(seen)
""",
    )
    assert first == same != []


def test_an_instance_whose_number_the_driver_does_not_tell_has_none(lab: Lab) -> None:
    scenario = Scenario.load("h100-mig").fault(function="nvmlDeviceGetGpuInstanceId", gpu=0, code="UNKNOWN")
    (gpu, *_) = lab.see(scenario, "say(sample(sampler()))")["gpus"]
    assert gpu["instances"]
    assert [part.get("gpu_instance") for part in gpu["instances"]] == [None] * len(gpu["instances"])


def test_processes_stay_with_their_instance_if_another_one_has_gone_meanwhile() -> None:
    listing, sample = Listing(), DeviceSample()
    listing.of_instances = {(1, 0): {10: Facts()}, (2, 0): {20: Facts()}}
    left = DeviceSample()
    left.values.update({"gpu_instance": 2, "compute_instance": 0})
    sample.instances = [left]
    listing.add_to(sample)
    assert [*left.processes] == [20]


def test_more_memory_in_use_than_there_is_is_dropped_on_the_gpu_and_on_an_instance(lab: Lab) -> None:
    lies = Scenario.load("a100-mig").gpu(0, memory__used="900 GiB")
    lies.instance(gpu=0, gi=9, ci=0, profile="1g.5gb", slices=1, memory__total="5 GiB", memory__used="900 GiB")
    (gpu,) = lab.run(lies, "--json").gpus
    for part in (gpu, gpu["instances"][-1]):
        assert (part["memory_used"], part["gaps"]["memory_used"]) == (None, "failed")
        assert (part["memory_percent"], part["gaps"]["memory_percent"]) == (None, "failed")
        assert part["memory_total"] > 0
    assert "900" not in lab.run(lies).out
