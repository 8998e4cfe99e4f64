"""Every field of --query-gpu as nvidia-smi itself wrote it on an H200: header, value, and value without its unit."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpulse.surfaces.query.fields import COMPUTE_APP_FIELDS, FIELDS, field_named, unsupported_fields
from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

RECORDED = Path(__file__).parents[3] / "shared" / "h200"
FILES = {"idle": RECORDED / "smi-every-field-idle.txt", "load": RECORDED / "smi-every-field-load.txt"}
pytestmark = pytest.mark.skipif(not FILES["idle"].exists(), reason="the recordings of a real H200 are not here")

# What the driver answered in the second of each recording, where the scenario was written in another.
MOMENTS: dict[str, dict[str, Any]] = {
    "idle": {
        "temperature": 32, "temperature.memory": 33, "temperature.margin": 55,
        "power": 77610, "power.average": 77600, "power.instant": 77320,
    },
    "load": {
        "temperature": 57, "temperature.memory": 46, "temperature.margin": 27,
        "power": 692060, "power.average": 690240, "power.instant": 661040,
        "clock.graphics": 1530, "clock.sm": 1485, "clock.video": 1500,
        "utilization.gpu": 99, "utilization.memory": 25,
        "memory.used": 1193803776, "violation.power": 8468724000,
    },
}  # fmt: skip
TIME = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}"
# nvidia-smi was asked twice, with units and without: what moved in between is compared by its shape.
BY_SHAPE = {
    "timestamp": TIME,
    "power.draw": r"\d+\.\d\d( W)?",
    "power.draw.average": r"\d+\.\d\d( W)?",
    "power.draw.instant": r"\d+\.\d\d( W)?",
    "clocks.current.graphics": r"\d+( MHz)?",
    "clocks.current.video": r"\d+( MHz)?",
}
ASK = """
from gpulse.surfaces.query.field import QueryRow
from gpulse.surfaces.query.fields import COMPUTE_APP_FIELDS, FIELDS
keys = [key for field in FIELDS.values() for key in field.keys]
over = sampler(Wanted(keys, ["pid", "command", "name", "memory_used"]))
snapshot = over.read()
gpu = snapshot.gpus[0]
row = QueryRow(snapshot, gpu)
def texts(fields, row):
    return {name: [field.header(), field.text(row), field.text(row, False)] for name, field in fields.items()}
say({
    "fields": texts(FIELDS, row),
    "apps": [texts(COMPUTE_APP_FIELDS, QueryRow(snapshot, gpu, process)) for process in gpu.processes],
    "problems": [str(problem) for problem in snapshot.problems],
    "dropped": over.dropped,
})
over.close()
"""


def recorded(moment: str) -> dict[str, list[str]]:
    """Header, value and value without unit of each field, by name."""
    lines = FILES[moment].read_text().split("\n\n")[0].splitlines()[1:]
    return {name: texts for name, *texts in (line.split("\t") for line in lines)}


@cache
def answered(lab: Lab, moment: str) -> Any:
    """The same from gpulse, all fields in one sample."""
    scenario = Scenario.load({"idle": "h200-idle", "load": "h200-busy"}[moment]).gpu(0, **MOMENTS[moment])
    return lab.see(scenario, ASK)


@pytest.mark.parametrize("moment", FILES)
def test_gpulse_has_every_field_that_was_recorded(moment: str) -> None:
    assert set(recorded(moment)) == set(FIELDS)


@pytest.mark.parametrize("moment", FILES)
def test_every_header_is_nvidia_smis(lab: Lab, moment: str) -> None:
    theirs, ours = recorded(moment), answered(lab, moment)["fields"]
    assert {name: ours[name][0] for name in theirs} == {name: header for name, (header, *_) in theirs.items()}


@pytest.mark.parametrize("moment", FILES)
@pytest.mark.parametrize("column", [1, 2], ids=["units", "nounits"])
def test_every_value_is_nvidia_smis_to_the_letter(lab: Lab, moment: str, column: int) -> None:
    theirs, ours = recorded(moment), answered(lab, moment)["fields"]
    moved = {"timestamp"} if column == 1 else BY_SHAPE.keys()
    for name in moved:
        assert re.fullmatch(BY_SHAPE[name], theirs[name][column]), name
        assert re.fullmatch(BY_SHAPE[name], ours[name][column]), name
    assert {name: ours[name][column] for name in theirs if name not in moved} == {
        name: texts[column] for name, texts in theirs.items() if name not in moved
    }


@pytest.mark.parametrize("moment", FILES)
def test_nothing_went_wrong_on_the_way(lab: Lab, moment: str) -> None:
    answer = answered(lab, moment)
    assert answer["problems"] == []
    assert answer["dropped"] == {}


def test_what_gpulse_cannot_say_is_what_nvidia_smi_could_not_say_either(lab: Lab) -> None:
    empty = {"[N/A]", "N/A", "[Requested functionality has been deprecated]"}
    theirs = recorded("idle")
    assert {theirs[name][1] for name in unsupported_fields()} <= empty


def test_every_name_in_nvidia_smis_own_help_is_known() -> None:
    text = (RECORDED / "smi.txt").read_text()
    start, end = text.index("$ nvidia-smi --help-query-gpu"), text.index("$ nvidia-smi --help-query-compute-apps")
    entries = re.findall(r'^"([^"]+)"(?: or "([^"]+)")?$', text[start:end], re.MULTILINE)
    assert len(entries) == len(FIELDS)
    for name, alias in entries:
        assert field_named(name).name == name
        assert field_named(alias or name).name == name


def test_compute_processes_are_nvidia_smis(lab: Lab) -> None:
    lines = FILES["load"].read_text().split("$ nvidia-smi --query-compute-apps=")[1:]
    names, header, with_units = lines[0].splitlines()[0].split(" ")[0], *lines[0].splitlines()[1:3]
    without = lines[1].splitlines()[1]
    (app,) = answered(lab, "load")["apps"]
    asked = names.split(",")
    assert set(asked) == set(COMPUTE_APP_FIELDS)
    assert ", ".join(app[name][0] for name in asked) == header
    for column, line in ((1, with_units), (2, without)):
        theirs = dict(zip(asked, line.split(", "), strict=True))
        assert re.fullmatch(TIME, theirs.pop("timestamp"))
        assert re.fullmatch(TIME, app["timestamp"][column])
        for name in ("gpu_bus_id", "gpu_name", "gpu_serial", "gpu_uuid"):
            assert app[name][column] == theirs[name]
        assert app["pid"][column].isdecimal()
        assert re.fullmatch(r"\d+ MiB" if column == 1 else r"\d+", app["used_gpu_memory"][column])
        assert app["process_name"][column]


SAY = """
from gpulse.surfaces.query.field import QueryRow
from gpulse.surfaces.query.fields import field_named
fields = [field_named(name) for name in {names!r}]
over = sampler(Wanted([key for field in fields for key in field.keys]))
snapshot = over.read()
say([field.text(QueryRow(snapshot, snapshot.gpus[0])) for field in fields])
over.close()
"""


def texts(lab: Lab, scenario: Scenario, *names: str) -> Any:
    return lab.see(scenario, SAY.format(names=names))


def h200(**values: Any) -> Scenario:
    return Scenario.load("h200-idle").gpu(0, **values)


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("gom.current", {"operation_mode": 2, "operation_mode.pending": 0}, "Low Double Precision"),
        ("gom.pending", {"operation_mode": 2, "operation_mode.pending": 0}, "All On"),
        ("driver_model.current", {"driver_model": 1, "driver_model.pending": 0}, "TCC"),
        ("gpu_recovery_action", {"recovery_action": 4}, "Drain and Reset"),
        ("gpu_recovery_action", {"recovery_action": 99}, "99"),
        ("inforom.checksum_validation", {"inforom.valid": 0}, "invalid"),
        ("inforom.checksum_validation", {"inforom.valid": "error NO_PERMISSION"}, "[Insufficient Permissions]"),
        ("hostname", {"hostname": "node-7"}, "node-7"),
        ("hostname", {"hostname": '""'}, "[N/A]"),
        ("retired_pages.sbe", {"retired.corrected": 3}, "3"),
        ("retired_pages.pending", {"retired.pending": 1}, "Yes"),
        ("remapped_rows.uncorrectable", {"remapped.uncorrected": 2}, "2"),
        ("remapped_rows.correctable_inactive", {"remapped.corrected.inactive": 5}, "5"),
        ("remapped_rows.failure", {"remapped.failure": 1}, "Yes"),
        ("mig.mode.pending", {"mig.pending": 1}, "Enabled"),
        ("dramEncryption.mode.pending", {"memory.encryption": 0, "memory.encryption.pending": 1}, "Enabled"),
        ("module.power.draw.average", {"module.power.average": "812.5 W"}, "812.50 W"),
        ("ecc.errors.uncorrected.aggregate.sram.pcie", {"ecc.sram.pcie": 7}, "7"),
        ("ecc.errors.uncorrected.volatile.l2_cache", {"ecc.volatile.uncorrected.l2": 2**40}, str(2**40)),
        ("encoder.stats.averageLatency", {"encoder.latency": 1234}, "1234"),
        ("temperature.gpu.tlimit", {"temperature.margin": 4294967293}, "-3"),
        ("platform.gpu_fabric_guid", {"platform.guid": 0xABCDEF0123456789}, "0xabcdef0123456789"),
        ("platform.peer_type", {"platform.peer": 1}, "Switch Connected"),
        ("ecc.mode.current", {"ecc.mode": "unavailable"}, "[N/A]"),
        ("power.draw.instant", {"power.instant": "error UNKNOWN"}, "[Unknown Error]"),
        ("power.min_limit", {"power.limit.min": "unavailable"}, "[N/A]"),
    ],
)
def test_other_boards_are_spelt_as_nvidia_smi_spells_them(
    lab: Lab, name: str, values: dict[str, Any], text: str
) -> None:
    assert texts(lab, h200(**values), name) == [text]


FABRIC = (
    "fabric.state", "fabric.status", "fabric.cliqueId", "fabric.clusterUuid", "fabric.health.summary",
    "fabric.health.bandwidth", "fabric.health.route_unhealthy", "fabric.health.incorrect_configuration",
    "fabric.health.partition_assigned",
)  # fmt: skip


def test_a_fabric_is_told_in_full(lab: Lab) -> None:
    health = 2 | 1 << 4 | 5 << 8 | 1 << 12
    board = {
        "fabric.state": 3,
        "fabric.clique": 4,
        "fabric.cluster": 0xAB,
        "fabric.health": health,
        "fabric.summary": 2,
    }
    told = [
        "Completed", "Success", "4", "abababab-abab-abab-abab-abababababab", "Unhealthy",
        "Full", "True", "Insufficient NVLink Resources", "True",
    ]  # fmt: skip
    assert texts(lab, h200(**board), *FABRIC) == told
    told[4] = "N/A"  # drivers before the third version have no summary
    assert texts(lab, h200(**board, **{"fabric.old": 1}), *FABRIC) == told
    assert texts(lab, h200(**{"fabric.state": 2}), *FABRIC) == ["In Progress", *["N/A"] * 8]
    assert texts(lab, h200(**{"fabric.state": 3, "fabric.status": 999}), *FABRIC)[1] == "Unknown Error"


def test_a_driver_that_has_none_of_the_newer_calls_leaves_the_fields_empty(lab: Lab) -> None:
    names = [name for name, field in FIELDS.items() if field.key]
    answered = dict(zip(names, texts(lab, Scenario.load("k80-old"), *names), strict=True))
    assert answered["platform.module_id"] == "[N/A]"
    assert answered["fabric.state"] == "N/A"
    assert answered["name"] not in ("", "[N/A]")


@pytest.mark.parametrize("code", ["GPU_IS_LOST", "UNKNOWN", "NO_PERMISSION", "NOT_SUPPORTED"])
def test_any_detail_may_fail(lab: Lab, code: str) -> None:
    names = [name for name, field in FIELDS.items() if field.key and field.name not in ("index", "count")]
    scenario = Scenario.load("h200-idle").fault(function="nvmlDevice*", gpu=0, code=code)
    for text in texts(lab, scenario, *names):
        assert text.startswith(("[", "N/A")) or text == "580.159.04", text


def test_a_loop_over_fields_the_board_has_not_leaves_the_driver_open(lab: Lab) -> None:
    answer = lab.ask(
        h200(),
        """
import gpulse.sources.nvidia.source as source
source._REOPEN_EVERY = 0.0
over = sampler(Wanted(["fan_speed", "retired_pages_pending"]), slow_every=0)
for moment in range(4):
    at(moment)
    sample(over)
over.close()
say(None)
""",
    )
    assert answer.code == 0
    assert answer.calls["nvmlInit_v2"] == 1


def test_details_are_read_only_for_a_question_that_names_them(lab: Lab) -> None:
    calls = lab.run(Scenario.load("h200-idle"), "--json").calls
    assert not calls.keys() & {"nvmlDeviceValidateInforom", "nvmlDeviceGetPlatformInfo", "nvmlDeviceGetEccMode"}
    assert not calls["nvmlDeviceGetPcieThroughput"]


def test_what_never_changes_is_asked_once(lab: Lab) -> None:
    answer = lab.ask(h200(), ASK.replace("snapshot = over.read()", "over.read(); at(9); snapshot = over.read()"))
    for function in ("nvmlDeviceValidateInforom", "nvmlDeviceGetPciInfoExt", "nvmlDeviceGetPlatformInfo"):
        assert answer.calls[function] == 1, function
    assert not answer.calls["nvmlDeviceGetPcieThroughput"]
