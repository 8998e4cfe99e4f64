"""An MI300: socket power and energy from the firmware, XGMI, partitions as instances, and who computes on which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpulse.model.select import Wanted
from gpulse.sampling.sampler import Sampler
from gpulse.sources.amd.source import AmdSource
from tests.unit.sources.amd.cards import kfd_node, radeon
from tests.unit.sources.trees import packed, read_one, under, write_tree

PROC = "sys/class/kfd/kfd/proc"


def socket_table(read_kilobytes: int = 1000, ticks: int = 100_000_000, partitions: int = 1) -> bytes:
    return packed((1, 7), 2208, {
        4: ("H", 61), 6: ("H", 54), 10: ("H", 540), 12: ("H", 88), 14: ("H", 45), 24: ("Q", 65536 * 3600), 68: ("H", 16), 70: ("H", 320),
        72: ("H", 16), 136: ("Q", read_kilobytes), 144: ("Q", 500), 200: ("Q", 0), 288: ("Q", ticks), 296: ("H", 2100), 298: ("H", 1990),
        336: ("H", 1300), 338: ("H", partitions), 344: ("I", 90), 348: ("I", 86), 344 + 232: ("I", 10),
    })  # fmt: skip


def test_the_firmware_says_what_hwmon_does_not(tmp_path: Path) -> None:
    gone: dict[str, Any] = dict.fromkeys(f"hwmon__hwmon11__{name}" for name in (
        "temp1_input", "temp2_input", "temp3_input", "power1_average", "freq1_input", "freq2_input", "fan1_input", "pwm1"))  # fmt: skip
    root = radeon(
        tmp_path, pci_id="1002:74A1", gpu_metrics=socket_table(), gpu_busy_percent=None, mem_busy_percent=None, **gone
    )
    sample = read_one(AmdSource(str(root)))
    expected = {"utilization": 88, "memory_utilization": 45, "dram_active": 45, "temperature": 61, "hotspot_temperature": 61,
                "memory_temperature": 54, "power_draw": 540, "energy": 3600.0, "clock_sm": 2100, "clock_memory": 1300, "pcie_gen": 5,
                "pcie_width": 16, "memory_unified": False}  # fmt: skip
    assert {key: sample.values.get(key) for key in expected} == expected
    assert sample.gaps["fan_speed"] == sample.gaps["fan_rpm"] == "unsupported"


def test_xgmi_is_a_rate_by_the_firmwares_clock(tmp_path: Path) -> None:
    root = radeon(tmp_path, gpu_metrics=socket_table(1000, 100_000_000))
    sampler = Sampler(AmdSource(str(root)), Wanted(["xgmi_rx", "xgmi_tx", "nvlink_rx"])).open()
    first = sampler.read().gpus[0]
    assert first.gaps["xgmi_rx"] == "pending"
    write_tree(
        tmp_path, {"sys/class/drm/card0/device/gpu_metrics": socket_table(5000, 300_000_000)}
    )  # two seconds later
    second = sampler.read().gpus[0]
    assert second.xgmi_rx == 2_000_000
    assert second.xgmi_tx == 0
    assert second.gaps["nvlink_rx"] == "unsupported"
    sampler.close()


def partitioned(root: Path) -> Path:
    radeon(root, pci_id="1002:74A1", slot="0000:05:00.0", gpu_metrics=socket_table(partitions=2),
           current_compute_partition="DPX\n", current_memory_partition="NPS1\n")  # fmt: skip
    write_tree(
        root, {**kfd_node(0, 0, 0), **kfd_node(1, 101, 0x500, unique_id=7), **kfd_node(2, 102, 0x501, unique_id=7)}
    )
    for node, used in ((1, 1 << 30), (2, 3 << 30)):
        bank = f"sys/class/kfd/kfd/topology/nodes/{node}/mem_banks/0"
        write_tree(
            root, under(bank, {"properties": f"heap_type 1\nsize_in_bytes {96 << 30}\n", "used_memory": f"{used}\n"})
        )
    return root


def test_partitions_stand_under_their_gpu(tmp_path: Path) -> None:
    source = AmdSource(str(partitioned(tmp_path)))
    source.open()
    assert len(source.devices) == 1
    assert [part["uuid"] for part in source.devices[0].parts()] == ["GPU-946d7e1ef9b172dd-0", "GPU-946d7e1ef9b172dd-1"]
    sample = read_one(source)
    assert sample.values["partition_mode"] == "DPX/NPS1"
    assert [part.values["utilization"] for part in sample.instances] == [88.0, 10.0]
    assert [part.values["memory_used"] for part in sample.instances] == [1 << 30, 3 << 30]
    assert [part.values["memory_total"] for part in sample.instances] == [96 << 30] * 2
    assert all("power_draw" not in part.values for part in sample.instances)


def test_compute_processes_are_on_their_partition_and_idle_ones_on_none(tmp_path: Path) -> None:
    partitioned(tmp_path)
    write_tree(tmp_path, {
        f"{PROC}/4001/vram_101": f"{5 << 30}\n", f"{PROC}/4001/vram_102": "0\n", f"{PROC}/4001/sdma_101": "9\n",
        f"{PROC}/4002/vram_102": "0\n", f"{PROC}/4002/queues/0/gpuid": "102\n", f"{PROC}/4003/vram_101": "0\n",
        f"{PROC}/none/vram_101": "1\n",
    })  # fmt: skip
    sample = read_one(AmdSource(str(tmp_path)))
    assert {pid: facts.values["memory_used"] for pid, facts in sample.instances[0].processes.items()} == {4001: 5 << 30}
    assert {pid: facts.values["type"] for pid, facts in sample.instances[1].processes.items()} == {4002: "C"}
    assert sample.processes == {}
    assert sample.instances[0].processes[4001].gaps["sm_utilization"] == "unsupported"


def test_a_missing_partition_leaves_the_others_their_numbers(tmp_path: Path) -> None:
    radeon(tmp_path, pci_id="1002:74A1", slot="0000:05:00.0", gpu_metrics=socket_table(partitions=2))
    write_tree(tmp_path, {**kfd_node(1, 101, 0x501, unique_id=7), **kfd_node(2, 102, 0x502, unique_id=7)})
    sample = read_one(AmdSource(str(tmp_path)))
    assert [part.values["gpu_instance"] for part in sample.instances] == [1, 2]
    assert [part.values.get("utilization") for part in sample.instances] == [10.0, None]


def test_gpus_that_only_the_compute_driver_lists_are_gpus(tmp_path: Path) -> None:
    nodes = {**kfd_node(0, 0, 0), **kfd_node(1, 9, 0x4300, device_id=0x740F, unique_id=5, gfx_target_version=90010)}
    bank = {"properties": f"heap_type 1\nsize_in_bytes {64 << 30}\n", "used_memory": f"{2 << 30}\n"}
    write_tree(tmp_path, {**nodes, **under("sys/class/kfd/kfd/topology/nodes/1/mem_banks/0", bank)})
    source = AmdSource(str(tmp_path))
    sample = read_one(source)
    identity = source.devices[0].identity
    assert (identity["uuid"], identity["pci_bus_id"], identity["name"]) == (
        "GPU-0000000000000005", "0000:43:00.0", "AMD Instinct MI210")  # fmt: skip
    assert identity["architecture"] == "CDNA 2 (gfx90a)"
    assert (sample.values["memory_used"], sample.values["memory_total"]) == (2 << 30, 64 << 30)
    assert sample.gaps["temperature"] == "unsupported"
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/used_memory").unlink()
    assert read_one(source).state == "ok"
