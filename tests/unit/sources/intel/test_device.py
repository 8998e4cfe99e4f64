"""Intel GPUs read from files: clocks, heat, and what only two reads can tell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.errors import SourceUnavailable
from gpulse.sources.base import DeviceSample
from gpulse.sources.intel.source import IntelDevice, IntelSource
from tests.unit.sources.intel.cards import SLOT, arc, client, old_arc
from tests.unit.sources.trees import KEYS, PROCESS_KEYS, read_one, under, write_tree

DEVICE = "sys/class/drm/card1/device"


class Clock:
    """A clock that a test turns by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(root: Path) -> tuple[IntelSource, IntelDevice, Clock]:
    source, clock = IntelSource(str(root)), Clock()
    source.open()
    (device,) = source.devices
    device._clock = source._clients._clock = clock
    return source, device, clock


def again(source: IntelSource, device: IntelDevice) -> DeviceSample:
    source.refresh()
    return device.read(KEYS, PROCESS_KEYS)


def test_an_arc_of_xe_has_every_value_in_its_unit(tmp_path: Path) -> None:
    sample = read_one(IntelSource(str(arc(tmp_path))))
    expected = {"temperature": 54.0, "memory_temperature": 56.0, "temperature_limit": 100.0, "fan_rpm": 1000, "fan_speed": 50.0,
                "power_limit": 190.0, "energy": 5.0, "clock_sm": 2400, "clock_graphics": 2400, "clock_sm_max": 2850, "clock_video": 1200,
                "throttle_reasons": (), "memory_unified": False}  # fmt: skip
    assert {key: sample.values.get(key) for key in expected} == expected
    assert sample.gaps["utilization"] == sample.gaps["power_draw"] == "pending"
    assert sample.gaps["memory_used"] == sample.gaps["memory_total"] == "unsupported"


def test_an_arc_of_i915_says_why_it_is_slow(tmp_path: Path) -> None:
    sample = read_one(IntelSource(str(old_arc(tmp_path))))
    assert sample.values["throttle_reasons"] == ("sw_power_cap", "hw_thermal_slowdown")
    assert (sample.values["temperature"], sample.values["power_limit"], sample.values["energy"]) == (
        55.0,
        55.0,
        59500.0,
    )
    assert (sample.values["clock_sm"], sample.values["clock_sm_max"]) == (600, 2450)
    assert sample.gaps["power_default_limit"] == "unsupported"  # 0 means that none is set


def test_a_reason_of_a_later_kernel_keeps_its_own_word(tmp_path: Path) -> None:
    root = arc(tmp_path, tile0__gt0__freq0__throttle__status="1\n", tile0__gt0__freq0__throttle__reason_new="1\n")
    assert read_one(IntelSource(str(root))).values["throttle_reasons"] == ("new",)


@pytest.mark.parametrize(("idle", "busy"), [(1250, 50.0), (1500, 0.0), (1510, 0.0), (1001, 99.8)])
def test_utilization_is_the_time_not_spent_idle(tmp_path: Path, idle: int, busy: float) -> None:
    source, device, clock = opened(arc(tmp_path))
    again(source, device)
    clock.now += 0.5
    write_tree(tmp_path, {f"{DEVICE}/tile0/gt0/gtidle/idle_residency_ms": f"{idle}\n"})
    assert again(source, device).values["utilization"] == busy


def test_an_idle_count_that_went_back_begins_anew(tmp_path: Path) -> None:
    source, device, clock = opened(arc(tmp_path))
    again(source, device)
    clock.now += 0.5
    write_tree(tmp_path, {f"{DEVICE}/tile0/gt0/gtidle/idle_residency_ms": "10\n"})
    assert again(source, device).gaps["utilization"] == "pending"
    clock.now += 1.0
    write_tree(tmp_path, {f"{DEVICE}/tile0/gt0/gtidle/idle_residency_ms": "760\n"})
    assert again(source, device).values["utilization"] == 25.0


def test_power_is_energy_over_time(tmp_path: Path) -> None:
    source, device, clock = opened(arc(tmp_path))
    assert again(source, device).gaps["power_draw"] == "pending"
    clock.now += 2.0
    write_tree(tmp_path, {f"{DEVICE}/hwmon/hwmon12/energy2_input": "85000000\n"})
    assert again(source, device).values["power_draw"] == 40.0
    clock.now += 0.01
    assert again(source, device).values["power_draw"] == 40.0  # too close to say anything new
    clock.now += 2.0
    assert again(source, device).gaps["power_draw"] == "pending"  # a counter that stands still is no 0 W
    write_tree(tmp_path, {f"{DEVICE}/hwmon/hwmon12/energy2_input": "1\n"})
    clock.now += 2.0
    assert again(source, device).gaps["power_draw"] == "pending"


def test_a_first_read_after_priming_has_its_rates(tmp_path: Path) -> None:
    _, device, clock = opened(arc(tmp_path))
    device.prime(KEYS)
    assert not device.settled()
    clock.now += 0.1
    write_tree(
        tmp_path,
        {
            f"{DEVICE}/hwmon/hwmon12/energy2_input": "9000000\n",
            f"{DEVICE}/tile0/gt0/gtidle/idle_residency_ms": "1090\n",
        },
    )
    assert device.settled()
    sample = device.read(KEYS, None)
    assert sample.values["power_draw"] == pytest.approx(40.0)
    assert sample.values["utilization"] == pytest.approx(10.0)


def test_a_sleeping_gpu_is_left_alone(tmp_path: Path) -> None:
    source = IntelSource(str(arc(tmp_path, power__runtime_status="suspended\n")))
    sample = read_one(source)
    assert sample.state == "asleep"
    assert set(sample.gaps.values()) == {"asleep"}


def test_an_integrated_gpu_has_the_machines_memory(tmp_path: Path) -> None:
    old_arc(tmp_path, slot="0000:00:02.0", pci_id="8086:46A6")
    write_tree(tmp_path, {
        "proc/meminfo": "MemTotal: 32000 kB\nMemAvailable: 20000 kB\n",
        **client(70, 5, drm_driver="i915", drm_pdev="0000:00:02.0", drm_client_id="1", drm_resident_system0="300 KiB"),
    })  # fmt: skip
    sample = read_one(IntelSource(str(tmp_path)))
    assert sample.values["memory_unified"] is True
    assert (sample.values["memory_total"], sample.values["memory_used"]) == (32000 * 1024, 300 * 1024)
    assert sample.gaps["pcie_gen"] == "unsupported"


def test_engine_time_of_processes_is_a_share(tmp_path: Path) -> None:
    def cycles(rcs: int, ccs: int, total: int) -> dict[str, str | bytes]:
        return client(80, 4, drm_driver="xe", drm_pdev=SLOT, drm_client_id="9", drm_cycles_rcs=str(rcs), drm_total_cycles_rcs=str(total),
                      drm_cycles_ccs=str(ccs), drm_total_cycles_ccs=str(total), drm_engine_capacity_ccs="4",
                      drm_resident_vram0="64 MiB")  # fmt: skip

    arc(tmp_path)
    write_tree(tmp_path, cycles(1000, 0, 10_000))
    source, device, clock = opened(tmp_path)
    facts = again(source, device).processes[80]
    assert (facts.values["memory_used"], facts.gaps["sm_utilization"]) == (64 << 20, "pending")
    clock.now += 1.0
    write_tree(tmp_path, cycles(2000, 36_000, 20_000))
    facts = again(source, device).processes[80]
    assert facts.values["sm_utilization"] == 90.0  # 36000 of 10000 ticks on each of four engines


def test_the_link_is_that_of_the_slot(tmp_path: Path) -> None:
    arc(tmp_path)
    port = "sys/devices/pci0000:00/0000:00:01.0/0000:07:00.0"
    write_tree(tmp_path, under(port, {"current_link_speed": "16.0 GT/s PCIe\n", "current_link_width": "8\n"}))
    device, target = tmp_path / DEVICE, tmp_path / port / "0000:08:01.0/0000:09:00.0"
    target.parent.mkdir()
    device.rename(target)
    device.symlink_to(os.path.relpath(target, device.parent))
    sample = read_one(IntelSource(str(tmp_path)))
    assert (sample.values["pcie_gen"], sample.values["pcie_width"]) == (4, 8)


def test_kernels_before_5_18_have_the_files_at_the_card(tmp_path: Path) -> None:
    write_tree(tmp_path, under("sys/class/drm/card0", {
        "gt_act_freq_mhz": "350\n", "gt_max_freq_mhz": "1150\n", "power/rc6_residency_ms": "77\n",
        "device/uevent": "DRIVER=i915\nPCI_ID=8086:9BC5\nPCI_SLOT_NAME=0000:00:02.0\n",
    }))  # fmt: skip
    sample = read_one(IntelSource(str(tmp_path)))
    assert (sample.values["clock_sm"], sample.values["clock_sm_max"]) == (350, 1150)
    assert sample.gaps["utilization"] == "pending"


def test_without_idle_counters_the_clients_tell(tmp_path: Path) -> None:
    def busy(nanoseconds: int) -> dict[str, str | bytes]:
        return client(
            80,
            4,
            drm_driver="xe",
            drm_pdev=SLOT,
            drm_client_id="9",
            drm_engine_render=f"{nanoseconds} ns",
            drm_engine_copy="0 ns",
        )

    arc(tmp_path, tile0__gt0__gtidle__idle_residency_ms=None)
    write_tree(tmp_path, busy(0))
    source, device, clock = opened(tmp_path)
    assert again(source, device).gaps["utilization"] == "pending"
    clock.now += 1.0
    write_tree(tmp_path, busy(300_000_000))
    assert again(source, device).values["utilization"] == 30.0


def test_a_machine_without_such_a_card_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="i915 or xe"):
        IntelSource(str(tmp_path)).open()
