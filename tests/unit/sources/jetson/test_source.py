"""A Jetson read from files: two generations of boards, rails by name, and a sensor that is off."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import SourceUnavailable
from gpulse.sources.jetson import JetsonSource
from tests.unit.sources.jetson.boards import ORIN
from tests.unit.sources.trees import read_one, under, write_tree


def test_an_orin_has_what_nvml_does_not_say(tmp_path: Path) -> None:
    source = JetsonSource(str(write_tree(tmp_path, ORIN)))
    sample = read_one(source)
    expected = {"utilization": 43.7, "clock_sm": 930.75, "clock_sm_max": 1300.5, "temperature": 48.5, "temperature_limit": 99.0,
                "power_draw": 7.828, "fan_speed": 20.0,
                "memory_total": 64000 * 1024, "memory_used": 24000 * 1024, "memory_unified": True}  # fmt: skip
    assert {key: sample.values.get(key) for key in expected} == expected
    assert source.devices[0].identity["name"] == "NVIDIA Jetson AGX Orin Developer Kit"
    assert source.driver == {"l4t": "35.4.1"}
    assert sample.gaps["processes"] == sample.gaps["sm_active"] == "unsupported"


def test_a_sensor_that_is_off_is_no_temperature(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {**ORIN, "sys/class/thermal/thermal_zone1/temp": "-256000\n", "sys/devices/platform/gpu.0/load": "0\n"},
    )
    sample = read_one(JetsonSource(str(tmp_path)))
    assert sample.gaps["temperature"] == "asleep"
    assert sample.values["utilization"] == 0.0


def test_an_orin_nano_shares_a_rail_and_an_old_board_has_it_in_iio(tmp_path: Path) -> None:
    write_tree(tmp_path / "nano", {
        "sys/devices/platform/17000000.gpu/load": "10\n",
        **under("sys/class/hwmon/hwmon1", {"name": "ina3221\n", "in1_label": "VDD_IN\n", "in1_input": "5000\n", "curr1_input": "1000\n",
                                           "in2_label": "VDD_CPU_GPU_CV\n", "in2_input": "5000\n", "curr2_input": "400\n"}),
    })  # fmt: skip
    write_tree(tmp_path / "tx2", {
        "sys/devices/gpu.0/load": "990\n",
        **under("sys/bus/i2c/drivers/ina3221x/0-0040/iio:device0", {"rail_name_0": "VDD_SYS_GPU\n", "in_power0_input": "2311\n"}),
    })  # fmt: skip
    assert read_one(JetsonSource(str(tmp_path / "nano"))).values["power_draw"] == 2.0
    assert read_one(JetsonSource(str(tmp_path / "tx2"))).values["power_draw"] == 2.311


def test_without_load_and_rails_there_are_gaps(tmp_path: Path) -> None:
    write_tree(tmp_path, under("sys/class/devfreq/gpu-gpc-0", {"cur_freq": "1575000000\n"}))
    write_tree(tmp_path, under("sys/class/devfreq/gpu-nvd-0", {"cur_freq": "1\n"}))
    sample = read_one(JetsonSource(str(tmp_path)))
    assert sample.values["clock_sm"] == 1575.0
    assert {sample.gaps[key] for key in ("utilization", "power_draw", "temperature", "memory_used")} == {"unsupported"}


def test_a_machine_that_is_no_jetson_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="Tegra"):
        JetsonSource(str(tmp_path)).open()
