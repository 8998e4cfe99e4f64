"""What NVML answers and what becomes of it: real numbers as they were recorded, zeros, sentinels, garbage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpulse.model.catalog import GPU_METRICS
from gpulse.model.select import EVERYTHING
from gpulse.sources.nvidia.device import KEYS
from tests.e2e.lab import ROOT, Lab
from tests.fake_nvml import Scenario

RECORDED = ROOT.parent / "shared" / "h200"
GPM_NAMES = {
    "graphics_active": "GRAPHICS_UTIL", "sm_active": "SM_UTIL", "sm_occupancy": "SM_OCCUPANCY",
    "integer_active": "INTEGER_UTIL", "tensor_active": "ANY_TENSOR_UTIL", "dram_active": "DRAM_BW_UTIL",
    "fp64_active": "FP64_UTIL", "fp32_active": "FP32_UTIL", "fp16_active": "FP16_UTIL",
}  # fmt: skip


def recorded(name: str) -> Any:
    path = RECORDED / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return json.loads(path.read_text())


@pytest.mark.parametrize("load", ["idle", "busy"])
def test_a_real_card_is_shown_as_it_answered(lab: Lab, load: str) -> None:
    said = {name: entry["value"] for name, entry in recorded(f"nvml_{load}").items() if "value" in entry}
    answer = lab.run(Scenario.load(f"h200-{load}"), "--json")
    (gpu,) = answer.gpus
    memory, bar1 = said["nvmlDeviceGetMemoryInfo(33554472,)"], said["nvmlDeviceGetBAR1MemoryInfo"]
    fields = {entry["fieldId"]: entry["value"] for entry in said["nvmlDeviceGetFieldValues()"]}
    expected = {
        "name": said["nvmlDeviceGetName"],
        "uuid": said["nvmlDeviceGetUUID"],
        "serial": said["nvmlDeviceGetSerial"],
        "vbios": said["nvmlDeviceGetVbiosVersion"],
        "architecture": "Hopper",
        "driver_version": "580.159.04",
        "utilization": said["nvmlDeviceGetUtilizationRates"]["gpu"],
        "memory_utilization": said["nvmlDeviceGetUtilizationRates"]["memory"],
        "memory_used": memory["used"],
        "memory_free": memory["free"],
        "memory_reserved": memory["reserved"],
        "memory_total": memory["total"],
        "bar1_used": bar1["bar1Used"],
        "bar1_total": bar1["bar1Total"],
        "temperature": said["nvmlDeviceGetTemperature(0,)"],
        "temperature_limit": said["nvmlDeviceGetTemperatureThreshold(1,)"],
        "power_draw": said["nvmlDeviceGetPowerUsage"] / 1000,
        "power_limit": said["nvmlDeviceGetEnforcedPowerLimit"] / 1000,
        "power_default_limit": said["nvmlDeviceGetPowerManagementDefaultLimit"] / 1000,
        "clock_graphics": said["nvmlDeviceGetClockInfo(0,)"],
        "clock_sm": said["nvmlDeviceGetClockInfo(1,)"],
        "clock_memory": said["nvmlDeviceGetClockInfo(2,)"],
        "clock_video": said["nvmlDeviceGetClockInfo(3,)"],
        "clock_sm_max": said["nvmlDeviceGetMaxClockInfo(1,)"],
        "clock_memory_max": said["nvmlDeviceGetMaxClockInfo(2,)"],
        "pstate": said["nvmlDeviceGetPerformanceState"],
        "throttle_reasons": {"idle": ["gpu_idle"], "busy": ["sw_power_cap"]}[load],
        "encoder_utilization": said["nvmlDeviceGetEncoderUtilization"][0],
        "decoder_utilization": said["nvmlDeviceGetDecoderUtilization"][0],
        "jpeg_utilization": said["nvmlDeviceGetJpgUtilization"][0],
        "ofa_utilization": said["nvmlDeviceGetOfaUtilization"][0],
        "pcie_gen": said["nvmlDeviceGetCurrPcieLinkGeneration"],
        "pcie_width": said["nvmlDeviceGetCurrPcieLinkWidth"],
        "pcie_gen_max": said["nvmlDeviceGetMaxPcieLinkGeneration"],
        "pcie_width_max": said["nvmlDeviceGetMaxPcieLinkWidth"],
        "pcie_replays": said["nvmlDeviceGetPcieReplayCounter"],
        "ecc_corrected": said["nvmlDeviceGetTotalEccErrors(0, 0)"],
        "ecc_uncorrected": said["nvmlDeviceGetTotalEccErrors(1, 0)"],
        "remapped_rows": sum(said["nvmlDeviceGetRemappedRows"][:2]),
        "compute_mode": "default",
        "persistence_mode": bool(said["nvmlDeviceGetPersistenceMode"]),
        "mig_mode": bool(said["nvmlDeviceGetMigMode"][0]),
        "display_active": bool(said["nvmlDeviceGetDisplayActive"]),
    }
    assert {key: gpu[key] for key in expected} == expected
    if 82 in fields:
        assert gpu["memory_temperature"] == fields[82]["uiVal"]
    assert gpu["energy"] == pytest.approx(said["nvmlDeviceGetTotalEnergyConsumption"] / 1000, rel=0.2)
    assert gpu["gaps"]["fan_speed"] == "unsupported"
    assert answer.json["driver"] == {"version": "580.159.04", "cuda": "13.0", "nvml": "13.580.159.04"}


def test_activity_under_load_is_what_was_recorded(lab: Lab) -> None:
    values = recorded("gpm")["values"]
    (gpu,) = lab.run(Scenario.load("h200-busy"), "--json").gpus
    for key, name in GPM_NAMES.items():
        assert gpu[key] == pytest.approx(values[name][1], abs=0.01)
    assert gpu["pcie_rx"] == pytest.approx(values["PCIE_RX_PER_SEC"][1] * 2**20, rel=1e-6)
    assert gpu["pcie_tx"] == pytest.approx(values["PCIE_TX_PER_SEC"][1] * 2**20, rel=1e-6)


def test_every_zero_is_a_value(lab: Lab) -> None:
    answer = lab.run(Scenario.load("zeros"), "--json")
    (gpu,) = answer.gpus
    impossible = {"temperature_limit", "pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max"}  # 0 is none of these
    no_such = {"architecture", "xid_last", "xids", "gpu_instance", "compute_instance"}
    no_such |= {key for key in EVERYTHING.gpu if key.startswith("nvlink_")}  # 0 links
    no_such |= {"cpu_affinity", "numa_affinity", "own_numa_node"}  # where NVML says nothing, the kernel does
    nothing_of_nothing = {"memory_percent"}
    for key in EVERYTHING.gpu:
        if GPU_METRICS[key].kind != "identity" and key in KEYS - (impossible | no_such | nothing_of_nothing):
            assert gpu[key] in (0, [], "default"), key
    assert all(gpu[key] is None for key in impossible)
    (process,) = gpu["processes"]
    assert [process[key] for key in ("memory_used", "sm_utilization", "memory_utilization")] == [0, 0, 0]


def test_every_zero_is_shown(lab: Lab) -> None:
    out = lab.run(Scenario.load("zeros"), "-p").out
    for text in ("util", "SM", "tensor", "DRAM"):
        (line,) = [line for line in out.splitlines() if line.strip().startswith(f"{text} ")]
        assert " 0 %" in line
    assert "0 °C" in out
    assert "0 W" in out
    assert "0 MHz" in out
    table = lab.run(Scenario.load("zeros"), "-c", "utilization,power_draw,pstate,energy,fan_speed").out
    assert table.splitlines()[-1].split() == ["0", "0", "%", "0", "W", "P0", "0", "J", "0", "%"]


def test_all_ones_are_no_value_anywhere(lab: Lab) -> None:
    answer = lab.run(Scenario.load("sentinels"), "--json")
    (gpu,) = answer.gpus
    said = {key for key, metric in GPU_METRICS.items() if gpu.get(key) is not None and metric.kind != "identity"}
    assert said <= {"memory_unified", "mig_mode", "memory_reserved", "topology", "p2p"}  # no other GPU: an empty list
    (process,) = gpu["processes"]
    assert all(process[key] is None for key in ("memory_used", "sm_utilization", "decoder_utilization"))
    assert str(2**32 - 1) not in answer.out
    assert str(2**64 - 1) not in answer.out
    assert "NaN" not in answer.out


def test_what_a_board_calls_itself_cannot_act_on_a_terminal(lab: Lab) -> None:
    for arguments in ((), ("-p",), ("-c", "name,serial,vbios,uuid"), ("--json",), ("--color", "always")):
        answer = lab.run(Scenario.load("garbage"), *arguments)
        assert answer.code == 0
        raw = {char for char in answer.out if not char.isprintable() and char != "\n"}
        assert raw <= ({"\x1b"} if "always" in arguments else set())
        assert "\x1b]" not in answer.out
        assert "\x1b[31mRED" not in answer.out
    names = [gpu["name"] for gpu in lab.run(Scenario.load("garbage"), "--json").gpus]
    assert names[2] == 'quote " back\\slash <b>&amp;</b> comma, tab\tline\nend'
    assert len(names[3]) == 95
    assert names[4] is None


def test_no_line_breaks_out_of_its_row_because_of_a_name(lab: Lab) -> None:
    rows = lab.run(Scenario.load("garbage"), "-c", "name,utilization").out.splitlines()
    assert len(rows) == 2 + 6


def board(**values: Any) -> Scenario:
    return Scenario.load("h200-idle").gpu(0, **values)


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, []),
        (1, ["gpu_idle"]),
        (0x48, ["hw_slowdown", "hw_thermal_slowdown"]),
        (0x1FF, ["gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
                 "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clock_setting"]),
        (0x8000000000000004, ["sw_power_cap", "0x8000000000000000"]),
    ],
)  # fmt: skip
def test_throttle_bits_become_words_and_unknown_bits_stay_visible(lab: Lab, bits: int, words: list[str]) -> None:
    assert lab.run(board(throttle__reasons=bits), "--json").gpus[0]["throttle_reasons"] == words


def test_a_performance_state_that_is_unknown_is_a_gap(lab: Lab) -> None:
    (gpu,) = lab.run(board(pstate=32), "--json").gpus
    assert (gpu["pstate"], gpu["gaps"]["pstate"]) == (None, "unsupported")


def test_impossible_values_are_dropped_one_by_one(lab: Lab) -> None:
    values = {"utilization.gpu": 808334905, "power": 4000000000, "temperature": 65261, "clock.sm": 3000000}
    (gpu,) = lab.run(board(**values), "--json").gpus
    assert [gpu[key] for key in ("utilization", "power_draw", "temperature", "clock_sm")] == [None] * 4
    assert {gpu["gaps"][key] for key in ("utilization", "power_draw", "temperature", "clock_sm")} == {"failed"}
    assert gpu["memory_utilization"] == 0
    assert gpu["clock_memory"] == 3201


def test_a_share_a_hair_above_100_is_100(lab: Lab) -> None:
    assert lab.run(board(gpm__sm=100.4, gpm__dram=20), "--json").gpus[0]["sm_active"] == 100


@pytest.mark.parametrize(
    ("fans", "speed"),
    [
        ({"fan.count": 1, "fan.speed": 42}, 42),
        ({"fan.count": 3, "fan.0": 30, "fan.1": 55, "fan.2": 0}, 55),
        ({"fan.count": 2, "fan.0": "error UNKNOWN", "fan.1": 55}, 55),
        ({"fan.count": 2, "fan.0": 0, "fan.1": 0}, 0),
        ({"fan.count": 1, "fan.speed": 117}, 117),
    ],
)
def test_the_fan_speed_is_that_of_the_fastest_fan(lab: Lab, fans: dict[str, Any], speed: int) -> None:
    assert lab.run(board(**fans), "--json").gpus[0]["fan_speed"] == speed


def test_a_temperature_below_zero_is_one(lab: Lab) -> None:
    assert lab.run(board(temperature=-12), "--json").gpus[0]["temperature"] == -12


def test_an_old_driver_gives_what_it_has(lab: Lab) -> None:
    answer = lab.run(Scenario.load("k80-old"), "--json")
    gpu = answer.gpus[0]
    assert len(answer.gpus) == 2
    assert (gpu["memory_used"], gpu["memory_total"]) == (2222 << 20, 11441 << 20)
    assert (gpu["memory_reserved"], gpu["gaps"]["memory_reserved"]) == (None, "unsupported")
    assert (gpu["utilization"], gpu["temperature"], gpu["power_draw"]) == (64, 58, 118)
    assert gpu["throttle_reasons"] == []
    assert [process["memory_used"] for process in gpu["processes"]] == [2200 << 20]
    assert gpu["processes"][0]["sm_utilization"] == 64


def test_a_driver_without_any_versioned_start_still_starts(lab: Lab) -> None:
    answer = lab.run(Scenario.load("no-init-flags"), "--json")
    assert len(answer.gpus) == 2
    assert answer.calls["nvmlInitWithFlags"] == 0


@pytest.mark.parametrize("name", ["dgx-h100x8", "h200-busy", "k80-old", "laptop", "a100-mig", "h100-mig", "wsl"])
def test_the_call_that_blocks_for_20_ms_is_never_made(lab: Lab, name: str) -> None:
    calls = lab.run(Scenario.load(name), "--json").calls
    assert calls["nvmlInit_v2"] == calls["nvmlShutdown"] == 1
    assert calls["nvmlDeviceGetPcieThroughput"] == 0


def test_a_glance_asks_for_nothing_it_does_not_show(lab: Lab) -> None:
    calls = lab.run(Scenario.load("h200-busy")).calls
    dear = ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetProcessUtilization")
    assert [calls[name] for name in dear] == [0, 0, 0]


def test_what_is_static_is_asked_once_and_what_is_slow_now_and_then(lab: Lab) -> None:
    answer = lab.ask(
        Scenario.load("h200-busy"),
        """
from gpulse.sampling.clock import ManualClock
clock = ManualClock()
over = sampler(clock=clock, slow_every=5.0)
for second in range(11):
    at(second)
    over.read()
    clock.sleep(1.0)
over.close()
""",
    )
    assert answer.calls["nvmlDeviceGetUtilizationRates"] == 11
    assert answer.calls["nvmlDeviceGetMaxClockInfo"] == 2  # SM and memory, once each
    assert answer.calls["nvmlDeviceGetTotalEnergyConsumption"] == 3
    assert answer.calls["nvmlDeviceGetProcessUtilization"] == 3


def test_64_gpus_are_all_there(lab: Lab) -> None:
    assert [gpu["index"] for gpu in lab.run(Scenario.load("fleet64"), "--json").gpus] == list(range(64))


def test_memory_adds_up_and_is_never_taken_from_the_version_that_counts_reserved_as_used(lab: Lab) -> None:
    scenario = Scenario.load("h200-busy")
    (gpu,) = lab.run(scenario, "--json").gpus
    assert gpu["memory_used"] + gpu["memory_reserved"] + gpu["memory_free"] == gpu["memory_total"]
    for code in ("TIMEOUT", "UNKNOWN", "GPU_IS_LOST", "NO_PERMISSION"):
        failing = Scenario.load("h200-busy").fault(function="nvmlDeviceGetMemoryInfo_v2", code=code, gpu=0)
        answer = lab.run(failing, "--json")
        assert answer.gpus[0]["memory_used"] is None
        assert answer.calls["nvmlDeviceGetMemoryInfo"] == 0


def test_energy_only_grows(lab: Lab) -> None:
    seen = lab.see(
        Scenario.load("h200-busy"),
        """
over = sampler(Wanted(["energy"]), slow_every=0)
energy = []
for second in (0, 10, 20):
    at(second)
    energy.append(sample(over)["gpus"][0]["energy"])
say(energy)
""",
    )
    assert seen == pytest.approx([8083.348, 8083.348 + 6900.72, 8083.348 + 13801.44])
