"""An AMD GPU read from files: every value in its unit, every missing one a gap, a sleeping one left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.errors import SourceUnavailable
from gpulse.sources.amd.source import AmdSource
from tests.unit.sources.amd.cards import SLOT, kfd_node, radeon
from tests.unit.sources.trees import packed, read_one, under, write_tree


def test_a_radeon_has_every_value_in_its_unit(tmp_path: Path) -> None:
    sample = read_one(AmdSource(str(radeon(tmp_path))))
    expected = {
        "utilization": 97, "memory_utilization": 31, "memory_used": 8_000_000_000, "memory_total": 17_163_091_968,
        "memory_free": 9_163_091_968, "memory_unified": False, "bar1_total": 17_163_091_968, "temperature": 45.0,
        "hotspot_temperature": 52.0, "memory_temperature": 48.0, "temperature_limit": 100.0, "fan_speed": 20.0, "fan_rpm": 1200,
        "power_draw": 96.5, "power_limit": 250.0, "power_default_limit": 240.0, "clock_sm": 2100.0, "clock_graphics": 2100.0,
        "clock_memory": 1000.0, "clock_sm_max": 2660.0, "clock_memory_max": 1000.0, "pcie_gen": 4, "pcie_width": 16,
        "pcie_gen_max": 4, "pcie_replays": 2,
    }  # fmt: skip
    assert {key: sample.values.get(key) for key in expected} == expected
    assert sample.gaps["sm_active"] == sample.gaps["dram_active"] == sample.gaps["energy"] == "unsupported"
    assert sample.state == "ok"


def test_it_says_who_it_is(tmp_path: Path) -> None:
    source = AmdSource(str(radeon(tmp_path)))
    source.open()
    identity = source.devices[0].identity
    assert identity["uuid"] == "GPU-946d7e1ef9b172dd"
    assert "RX 6900 XT" in str(identity["name"])
    assert str(identity["name"]).startswith("AMD ")
    assert identity["pci_bus_id"] == SLOT
    assert identity["vbios"] == "113-D4121EXT-CO1"


@pytest.mark.parametrize("status", ["suspended", "suspending"])
def test_a_sleeping_gpu_is_not_touched(tmp_path: Path, status: str) -> None:
    root = radeon(tmp_path, power__runtime_status=f"{status}\n")
    source = AmdSource(str(root))
    source.open()
    opened: list[str] = []
    real = os.open

    def watched(path: str, *rest: int) -> int:
        opened.append(str(path))
        return real(path, *rest)

    os.open = watched  # type: ignore[assignment]
    try:
        sample = read_one(source)
    finally:
        os.open = real
    assert sample.state == "asleep"
    assert set(sample.gaps.values()) == {"asleep"}
    assert not sample.values
    assert [path.rsplit("device/", 1)[-1] for path in opened] == ["power/runtime_status"]


def test_an_apu_adds_what_it_maps_of_the_machine(tmp_path: Path) -> None:
    table = packed((2, 1), 120, {4: ("H", 4200), 40: ("H", 15300), 64: ("H", 800), 68: ("H", 1333)})
    root = radeon(tmp_path, gpu_metrics=table, hwmon__hwmon11__temp1_input=None, hwmon__hwmon11__temp2_input=None,
                  hwmon__hwmon11__power1_average=None, hwmon__hwmon11__freq2_input=None, hwmon__hwmon11__freq1_input=None)  # fmt: skip
    sample = read_one(AmdSource(str(root)))
    assert sample.values["memory_unified"] is True
    assert sample.values["memory_total"] == 17_163_091_968 + 16_786_171_904
    assert sample.values["memory_used"] == 8_000_000_000 + 62_369_792
    assert (sample.values["temperature"], sample.values["power_draw"]) == (42.0, 15.3)
    assert (sample.values["clock_sm"], sample.values["clock_memory"]) == (800, 1333)


def test_an_apu_that_does_not_say_its_gtt_has_no_memory_figure(tmp_path: Path) -> None:
    root = radeon(tmp_path, pci_id="1002:15DD", mem_info_gtt_total=None, mem_info_gtt_used=None)
    sample = read_one(AmdSource(str(root)))
    assert sample.values["memory_unified"] is True
    assert sample.gaps["memory_total"] == sample.gaps["memory_used"] == "unsupported"


def test_zero_is_zero_and_missing_is_missing(tmp_path: Path) -> None:
    root = radeon(tmp_path, gpu_busy_percent="0\n", hwmon__hwmon11__power1_average="0\n", hwmon__hwmon11__fan1_input="0\n",
                  hwmon__hwmon11__temp3_input="0\n", hwmon__hwmon11__power1_cap="0\n", mem_busy_percent="n/a\n")  # fmt: skip
    sample = read_one(AmdSource(str(root)))
    assert (sample.values["utilization"], sample.values["power_draw"], sample.values["fan_rpm"]) == (0, 0.0, 0)
    assert sample.gaps["memory_temperature"] == "unsupported"  # 0 °C there means that no sensor is fitted
    assert sample.gaps["power_limit"] == "unsupported"
    assert sample.gaps["memory_utilization"] == "failed"


def test_power_falls_back_to_what_the_kernel_has(tmp_path: Path) -> None:
    root = radeon(tmp_path, hwmon__hwmon11__power1_average=None, hwmon__hwmon11__power1_input="41000000\n")
    assert read_one(AmdSource(str(root))).values["power_draw"] == 41.0


def test_the_link_is_that_of_the_slot(tmp_path: Path) -> None:
    """The card's own switch talks to its GPU at full speed whatever the slot does."""
    slot = "sys/devices/pci0000:00/0000:00:01.0"
    ports = {
        f"{slot}/vendor": "0x8086\n",
        **under(f"{slot}/0000:01:00.0", {"vendor": "0x1002\n", "current_link_speed": "8.0 GT/s PCIe\n", "current_link_width": "8\n",
                                         "max_link_speed": "16.0 GT/s PCIe\n", "max_link_width": "8\n"}),
        f"{slot}/0000:01:00.0/0000:02:00.0/vendor": "0x1002\n",
    }  # fmt: skip
    radeon(tmp_path)
    device = tmp_path / "sys/class/drm/card0/device"
    target = tmp_path / f"{slot}/0000:01:00.0/0000:02:00.0/0000:03:00.0"
    write_tree(tmp_path, ports)
    device.rename(target)
    device.symlink_to(os.path.relpath(target, device.parent))
    sample = read_one(AmdSource(str(tmp_path)))
    assert (sample.values["pcie_gen"], sample.values["pcie_width"]) == (3, 8)
    assert (sample.values["pcie_gen_max"], sample.values["pcie_width_max"]) == (4, 8)


def test_memory_errors_are_added_up_over_blocks(tmp_path: Path) -> None:
    radeon(tmp_path)
    errors = {
        "umc_err_count": "ue: 1\nce: 40\nde: 3\n",
        "gfx_err_count": "ue: 0\nce: 2\n",
        "pcie_bif_err_count": "ue: 9\nce: 9\n",
    }
    write_tree(tmp_path, under("sys/class/drm/card0/device/ras", errors))
    sample = read_one(AmdSource(str(tmp_path)))
    assert (sample.values["ecc_corrected"], sample.values["ecc_uncorrected"]) == (42, 1)


def test_an_old_card_of_radeon_has_what_hwmon_has(tmp_path: Path) -> None:
    write_tree(tmp_path, under("sys/class/drm/card0/device", {
        "uevent": "DRIVER=radeon\nPCI_ID=1002:6779\nPCI_SLOT_NAME=0000:01:00.0\n",
        "hwmon/hwmon3/name": "radeon\n", "hwmon/hwmon3/temp1_input": "51000\n", "hwmon/hwmon3/temp1_crit": "120000\n",
    }))  # fmt: skip
    sample = read_one(AmdSource(str(tmp_path)))
    assert sample.values["temperature"] == 51.0
    assert sample.gaps["utilization"] == sample.gaps["power_draw"] == "unsupported"


def test_connectors_partition_nodes_and_other_vendors_are_no_gpus(tmp_path: Path) -> None:
    radeon(tmp_path, number=1, slot="0000:43:00.0", unique_id=None)
    radeon(tmp_path, number=10, slot="0000:03:00.0")
    write_tree(tmp_path, {
        "sys/class/drm/card1-DP-1/status": "connected\n", "sys/class/drm/renderD128/dev": "226:128\n",
        "sys/class/drm/card2/device/uevent": "DRIVER=amdgpu\nMODALIAS=platform:amdgpu_xcp\n",
        "sys/class/drm/card3/device/uevent": "DRIVER=nvidia\nPCI_ID=10DE:2204\nPCI_SLOT_NAME=0000:65:00.0\n",
    })  # fmt: skip
    source = AmdSource(str(tmp_path))
    source.open()
    assert [device.identity["pci_bus_id"] for device in source.devices] == ["0000:03:00.0", "0000:43:00.0"]
    assert [device.identity["uuid"] for device in source.devices] == ["GPU-946d7e1ef9b172dd", "PCI-0000:43:00.0"]


def test_gpus_are_counted_as_hip_counts_them(tmp_path: Path) -> None:
    radeon(tmp_path, number=0, slot="0000:03:00.0")
    radeon(tmp_path, number=1, slot="0000:43:00.0", unique_id="1\n")
    write_tree(tmp_path, {**kfd_node(0, 0, 0), **kfd_node(1, 7, 0x4300), **kfd_node(2, 8, 0x0300)})
    source = AmdSource(str(tmp_path))
    source.open()
    assert [device.identity["pci_bus_id"] for device in source.devices] == ["0000:43:00.0", "0000:03:00.0"]


def test_a_machine_without_such_a_card_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="amdgpu"):
        AmdSource(str(tmp_path)).open()
