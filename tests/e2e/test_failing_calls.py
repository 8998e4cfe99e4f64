"""Every NVML call gpulse makes, failed with every code on one GPU of three: nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.model.catalog import GPU_METRICS
from gpulse.model.metric import GAPS
from gpulse.model.select import EVERYTHING
from gpulse.sources.nvidia.device import KEYS
from tests.e2e.lab import Answer, Lab
from tests.fake_nvml import Scenario

CODES = (1, 2, 3, 4, 6, 7, 10, 13, 15, 16, 17, 18, 25, 26, 999)
KINDS = (3, 4, 7, 10, 13, 15, 26, 999)  # one or two that are treated alike; `python -m bench.faults` tries more
NOT_FOUND = 6
UNSUPPORTED = (2, 3, 6, 13, 25, 26)
GPM = (
    "sm_active sm_occupancy tensor_active dram_active fp64_active fp32_active fp16_active integer_active"
    " graphics_active pcie_rx pcie_tx nvlink_rx nvlink_tx"
)
MEMORY = "memory_used memory_total memory_free memory_reserved memory_percent memory_unattributed"
SHARES = "sm_utilization memory_utilization encoder_utilization decoder_utilization"
# What each call answers. A call that only opens the way to others takes those with it; one with a stand-in takes nothing.
ANSWERS = {
    "nvmlDeviceGetAddressingMode": "",
    "nvmlDeviceGetArchitecture": "architecture",
    "nvmlDeviceGetBAR1MemoryInfo": "bar1_used bar1_total",
    "nvmlDeviceGetClockInfo": "clock_sm clock_memory clock_graphics clock_video",
    "nvmlDeviceGetComputeMode": "compute_mode",
    "nvmlDeviceGetComputeRunningProcesses_v3": "memory_unattributed",
    "nvmlDeviceGetCurrPcieLinkGeneration": "pcie_gen",
    "nvmlDeviceGetCurrPcieLinkWidth": "pcie_width",
    "nvmlDeviceGetCurrentClocksEventReasons": "throttle_reasons",
    "nvmlDeviceGetDecoderUtilization": "decoder_utilization",
    "nvmlDeviceGetDisplayActive": "display_active",
    "nvmlDeviceGetEncoderUtilization": "encoder_utilization",
    "nvmlDeviceGetEnforcedPowerLimit": "power_limit",
    "nvmlDeviceGetFanSpeed_v2": "fan_speed",
    "nvmlDeviceGetFieldValues": "memory_temperature nvlink_crc_errors nvlink_replay_errors nvlink_recovery_errors",
    "nvmlDeviceGetGraphicsRunningProcesses_v3": "",
    "nvmlDeviceGetJpgUtilization": "jpeg_utilization",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": "",
    "nvmlDeviceGetMaxClockInfo": "clock_sm_max clock_memory_max",
    "nvmlDeviceGetMaxPcieLinkGeneration": "pcie_gen_max",
    "nvmlDeviceGetMaxPcieLinkWidth": "pcie_width_max",
    "nvmlDeviceGetMemoryInfo_v2": MEMORY,
    "nvmlDeviceGetMigMode": "mig_mode",
    "nvmlDeviceGetCpuAffinity": "cpu_affinity",
    "nvmlDeviceGetIndex": "",
    "nvmlDeviceGetMemoryAffinity": "numa_affinity",
    "nvmlDeviceGetName": "name",
    "nvmlDeviceGetNumaNodeId": "own_numa_node",
    "nvmlDeviceGetNvLinkRemoteDeviceType": "topology",
    "nvmlDeviceGetNumFans": "",
    "nvmlDeviceGetNvLinkState": "nvlink_rx nvlink_tx nvlink_links nvlink_crc_errors nvlink_replay_errors nvlink_recovery_errors",
    "nvmlDeviceGetOfaUtilization": "ofa_utilization",
    "nvmlDeviceGetPciInfo_v3": "pci_bus_id",
    "nvmlDeviceGetPcieReplayCounter": "pcie_replays",
    "nvmlDeviceGetPerformanceState": "pstate",
    "nvmlDeviceGetPersistenceMode": "persistence_mode",
    "nvmlDeviceGetPowerManagementDefaultLimit": "power_default_limit",
    "nvmlDeviceGetPowerUsage": "power_draw",
    "nvmlDeviceGetProcessUtilization": "",
    "nvmlDeviceGetRemappedRows": "remapped_rows",
    "nvmlDeviceGetSerial": "serial",
    "nvmlDeviceGetTemperature": "temperature",
    "nvmlDeviceGetTemperatureThreshold": "temperature_limit",
    "nvmlDeviceGetTotalEccErrors": "ecc_corrected ecc_uncorrected",
    "nvmlDeviceGetTotalEnergyConsumption": "energy",
    "nvmlDeviceGetUUID": "uuid",
    "nvmlDeviceGetUtilizationRates": "utilization memory_utilization",
    "nvmlDeviceGetVbiosVersion": "vbios",
    "nvmlGpmQueryDeviceSupport": GPM,
    "nvmlGpmSampleGet": GPM,
}
# Calls on no GPU: these fail for all, and take only their own answer with them.
SYSTEM = {
    "nvmlGpmMetricsGet": GPM,
    "nvmlGpmSampleAlloc": GPM,
    "nvmlGpmSampleFree": "",
    "nvmlShutdown": "",
    "nvmlSystemGetCudaDriverVersion_v2": "",
    "nvmlSystemGetDriverVersion": "driver_version",
    "nvmlSystemGetNVMLVersion": "",
}
NEEDED = {"nvmlInit_v2", "nvmlDeviceGetCount_v2"}  # without these there is nothing to show
LOOKUP = "nvmlDeviceGetHandleByIndex_v2"
UNKNOWN_WITHIN = {
    "mig_profiles",
    "p2p",
    "nvlink_capabilities",
    "nvlink_remotes",
}  # these say ? or U in the place of what failed
MOVING = {
    key for key in GPU_METRICS if key.endswith(("_samples", "_links", "_trace_times"))
}  # these move from one time to the next
LESSER_LISTS = {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3"}


def machine() -> Scenario:
    """Three busy GPUs whose every number stands still."""
    values: dict[str, Any] = {
        "utilization.gpu": 90,
        "utilization.memory": 40,
        "power": "560 W",
        "energy": "5 kJ",
        "temperature": 61,
        "temperature.memory": 68,
        "fan.count": 2,
        "fan.speed": 30,
        "fan.min": 20,
        "power.instant": "570 W",
        "power.average": "560 W",
        "violation.power": 1000,
        "gpm.graphics": 90,
        "gpm.sm": 78,
        "gpm.tensor": 52,
        "gpm.dram": 38,
        "gpm.latch": 0,
    }
    scenario = Scenario.load("boards/h100").driver(gpus=3).gpu(None, **values)
    return scenario.process(gpu="0-2", pid="parent", memory="1 GiB", sm=80, mem=10, enc=1, dec=2)


@pytest.fixture(scope="module")
def healthy(lab: Lab) -> Answer:
    return lab.run(machine(), "--json")


def users(gpu: Any) -> list[tuple[Any, ...]]:
    """What the driver says of the processes of a GPU."""
    return [
        tuple(process.get(key) for key in ("pid", "type", "memory_used", *SHARES.split()))
        for process in gpu["processes"]
    ]


def plain(gpu: Any) -> dict[str, Any]:
    """What a GPU says of itself, without what comes from the machine."""
    return {key: value for key, value in gpu.items() if key not in ("processes", "gaps")} | {"users": users(gpu)}


def check_clean(seen: Any) -> None:
    assert seen["errors"] == []
    for gpu in seen["gpus"]:
        assert set(gpu["gaps"].values()) <= set(GAPS)


# One process for all codes, each of which has two seconds of the driver's time: starting one takes longer than a sample.
WINDOWS = """
seen = []
for window in range({windows} + 1):
    at(2 * window)
    over = sampler()
    over.settle(0)
    at(2 * window + 1)
    seen.append(sample(over))
    over.close()
say(seen)
"""


def failed(lab: Lab, function: str, **where: int) -> tuple[Any, list[tuple[int, Any]]]:
    """Return a sample in which every call answers, and one for each code that a function fails with."""
    scenario = machine()
    for at, code in enumerate(KINDS, 1):
        scenario.fault(function=function, code=code, since=f"{2 * at}s", until=f"{2 * at + 2}s", **where)
    healthy, *seen = lab.see(scenario, WINDOWS.format(windows=len(KINDS)))
    return healthy, list(zip(KINDS, seen, strict=True))


def check_only(gpu: Any, before: Any, keys: set[str]) -> None:
    """These keys are null and say why; all others are as before."""
    for key in EVERYTHING.gpu & KEYS:
        if key in keys:
            assert gpu.get(key, "left out") is None, (key, gpu.get(key, "left out"))
            assert gpu["gaps"].get(key) in GAPS, (key, gpu["gaps"])
        else:
            assert gpu.get(key) == before.get(key), key
            assert gpu["gaps"].get(key) == before["gaps"].get(key), key


def test_the_table_names_every_call_gpulse_makes(lab: Lab, healthy: Answer) -> None:
    table = {*ANSWERS, *SYSTEM, *NEEDED, LOOKUP}
    assert set(healthy.calls) == table
    for name in ("dgx-h100x8", "h200-busy"):
        made = lab.run(Scenario.load(name), "--json").calls
        assert set(made) - table == {"nvmlDeviceGetFanSpeed"}  # the one-fan call; its stand-in is in the table


@pytest.mark.parametrize("function", [*ANSWERS, *SYSTEM])
def test_a_glance_ends_well_whatever_call_fails(lab: Lab, healthy: Answer, function: str) -> None:
    answer = lab.run(
        machine().fault(function=function, code=999, **({} if function in SYSTEM else {"gpu": 1})), "--json"
    )
    assert (answer.code, answer.err) == (0, "")
    check_clean(answer.json)
    if function == "nvmlGpmQueryDeviceSupport":  # the byte counters answer
        assert answer.gpus[1]["pcie_rx"] == pytest.approx(healthy.gpus[1]["pcie_rx"], rel=0.2)


def test_every_metric_has_a_value_or_a_gap(healthy: Answer) -> None:
    check_clean(healthy.json)
    for gpu in healthy.gpus:
        optional = {"gpu_instance", "compute_instance"}
        assert {key for key in EVERYTHING.gpu & KEYS if gpu.get(key) is None and key not in gpu["gaps"]} <= optional


@pytest.mark.parametrize("function", ANSWERS)
def test_a_failing_call_takes_only_its_own_fields_with_it(lab: Lab, function: str) -> None:
    healthy, failing = failed(lab, function, gpu=1)
    for code, seen in failing:
        check_clean(seen)
        for at in (0, 2):
            assert plain(seen["gpus"][at]) == plain(healthy["gpus"][at]), code
        gpu, before = seen["gpus"][1], dict(healthy["gpus"][1])
        assert gpu["state"] == "ok"
        keys = set(ANSWERS[function].split())
        if function == "nvmlDeviceGetMemoryInfo_v2" and code in UNSUPPORTED:
            assert (
                gpu["memory_used"] == before["memory_used"] + before["memory_reserved"]
            )  # what the first version says
            assert gpu["memory_total"] == before["memory_total"]
            assert gpu["gaps"]["memory_reserved"] == "unsupported"
            continue
        if function == "nvmlDeviceGetTemperature" and code in (13, 26):
            keys = set()  # the newer call answers
        if function == "nvmlDeviceGetNvLinkState" and code not in UNSUPPORTED:
            keys.add("topology")
        elif function == "nvmlDeviceGetNvLinkState":
            before["topology"] = ["GPU0:NODE", "GPU2:NODE"]  # a GPU without NVLink
        if function == "nvmlGpmQueryDeviceSupport":
            keys -= {"pcie_rx", "pcie_tx"}  # the byte counters answer, by the machine's own time
            assert all(gpu[key] is not None for key in ("pcie_rx", "pcie_tx"))
            before |= {key: gpu[key] for key in ("pcie_rx", "pcie_tx")}
        if function in LESSER_LISTS and gpu.get("memory_unattributed") is None:
            keys = {"memory_unattributed"}
        check_only(gpu, before, keys)
        if function == "nvmlDeviceGetComputeRunningProcesses_v3":
            assert users(gpu) == []
            assert gpu["gaps"]["processes"] in GAPS
        elif function == "nvmlDeviceGetProcessUtilization":
            assert [user[:3] for user in users(gpu)] == [user[:3] for user in users(before)]
            told = [
                (process.get(key), process.get("gaps", {}).get(key))
                for process in gpu["processes"]
                for key in SHARES.split()
            ]
            expected = [0] if code == NOT_FOUND else [None]  # nobody ran anything, or nobody knows
            assert all([value] == expected and (value == 0 or gap in GAPS) for value, gap in told)
        else:
            assert users(gpu) == users(before)


@pytest.mark.parametrize("function", SYSTEM)
def test_a_failing_call_on_no_gpu_leaves_all_else_right(lab: Lab, function: str) -> None:
    healthy, failing = failed(lab, function)
    for _, seen in failing:
        check_clean(seen)
        for gpu, before in zip(seen["gpus"], healthy["gpus"], strict=True):
            check_only(gpu, before, set(SYSTEM[function].split()))
            assert users(gpu) == users(before)


@pytest.mark.parametrize("function", sorted(NEEDED))
def test_a_driver_that_does_not_start_is_one_sentence_and_exit_3(lab: Lab, function: str) -> None:
    for code in CODES:
        answer = lab.run(machine().fault(function=function, code=code), "--json")
        assert answer.code == 3
        assert answer.out == ""
        assert answer.err.startswith("gpulse: NVIDIA: ")
        assert answer.err.count("\n") == 1


def test_a_gpu_that_cannot_be_opened_keeps_its_row(lab: Lab, healthy: Answer) -> None:
    for code in CODES:
        answer = lab.run(machine().fault(function=LOOKUP, gpu=1, code=code), "--json")
        assert answer.code == 0
        assert answer.err == ""
        assert [error["message"].startswith("GPU 1 cannot be opened") for error in answer.json["errors"]] == [True]
        for at in (0, 2):  # how they are connected to it cannot be told
            near = [word for word in healthy.gpus[at]["topology"] if not word.startswith("GPU1:")]
            assert plain(answer.gpus[at]) == plain(healthy.gpus[at]) | {"topology": near}, code
        gpu = answer.gpus[1]
        assert (gpu["index"], gpu["vendor"]) == (1, "nvidia")
        assert gpu["state"] == ("lost" if code in (15, 16) else "ok" if code == 4 else "timeout")
        gap = "lost" if code in (15, 16) else "denied" if code == 4 else "timeout" if code == 10 else None
        for key in ("utilization", "memory_used", "power_draw", "sm_active"):
            assert gpu[key] is None
            assert gpu["gaps"][key] in GAPS if gap is None else gpu["gaps"][key] == gap


@pytest.mark.parametrize("function", [*ANSWERS, "nvmlGpmMetricsGet", "nvmlGpmSampleAlloc"])
def test_what_a_call_could_not_say_at_first_is_there_once_it_answers_again(
    lab: Lab, healthy: Answer, function: str
) -> None:
    everywhere: dict[str, int] = {} if function in SYSTEM else {"gpu": 1}
    for code in (10, 999):
        seen = lab.see(
            machine().fault(function=function, code=code, until="10s", **everywhere),
            """
over = sampler(slow_every=0)
over.settle(0)
at(1)
first = sample(over)
at(11)
sample(over)
at(12)
say([first, sample(over)])
""",
        )
        last = seen[1]["gpus"][1]
        check_only(last | {"uuid": last.get("uuid")}, healthy.gpus[1], set())
        assert users(last)[0][1:] == users(healthy.gpus[1])[0][1:]


@pytest.mark.parametrize("function", ANSWERS)
def test_a_value_does_not_outlive_the_call_that_gave_it(lab: Lab, function: str) -> None:
    seen = lab.see(
        machine().fault(function=function, gpu=1, code=10, since="10s"),
        """
over = sampler(slow_every=0)
over.settle(0)
at(1)
first = sample(over)
at(11)
sample(over)
at(12)
say([first, sample(over)])
""",
    )
    before, now = (sample["gpus"][1] for sample in seen)
    lasting = {key for key, metric in GPU_METRICS.items() if metric.cost == "static"}
    found_once = function in ("nvmlGpmQueryDeviceSupport", "nvmlDeviceGetNvLinkState")
    derived = {"memory_percent", "memory_unattributed"}  # whether these are null or left out is told above
    for key in (
        (EVERYTHING.gpu & KEYS) - {"xid_last", "xids", "own_numa_node", "gpu_instance", "compute_instance"} - derived
    ):
        once = found_once and key in ("nvlink_rx", "nvlink_tx", *GPM.split())  # which links there are is found once
        gone = key in ANSWERS[function].split() and key not in lasting and not once
        assert (now.get(key) is None) is gone, key
        assert gone or now[key] == before[key], key
    if set(MEMORY.split()) <= set(ANSWERS[function].split()):
        assert [now.get(key) for key in derived] == [None, None]


DETAILS = """
keys = [key for key, metric in GPU_METRICS.items() if metric.group == "details"]
seen = []
for window in range({windows} + 1):
    at(window + 0.5)
    over = sampler(Wanted(keys))
    seen.append(sample(over))
    over.close()
say(seen)
"""


def test_details_fail_one_by_one_too(lab: Lab) -> None:
    made = lab.ask(machine(), DETAILS.format(windows=0)).calls
    functions = sorted(name for name in made if name.startswith("nvmlDeviceGet") and "Count" not in name)
    assert len(functions) > 20
    for function in functions:
        if function == LOOKUP:
            continue
        scenario = machine()
        for at, code in enumerate(KINDS, 1):
            scenario.fault(function=function, gpu=1, code=code, since=f"{at}s", until=f"{at + 1}s")
        healthy, *failing = lab.see(scenario, DETAILS.format(windows=len(KINDS)))
        before = healthy["gpus"][1]
        for code, seen in zip(KINDS, failing, strict=True):
            assert seen["errors"] == []
            for at in (0, 2):
                moved = {key for key in GPU_METRICS if seen["gpus"][at].get(key) != healthy["gpus"][at].get(key)}
                assert not moved - MOVING, (function, code, moved)
            gpu = seen["gpus"][1]
            changed = {key for key in GPU_METRICS.keys() - MOVING if gpu.get(key) != before.get(key)}
            silent = {
                key for key in changed - UNKNOWN_WITHIN if gpu.get(key) is not None or gpu["gaps"].get(key) not in GAPS
            }
            assert not silent, (function, code)
