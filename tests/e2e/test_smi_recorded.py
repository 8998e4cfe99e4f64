"""`gpulse smi` on the scripted H200 against what nvidia-smi wrote on a real one: what differs is listed here, nothing else may.

Lines whose values change from second to second are compared by their shape.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

RECORDED = Path(__file__).parents[3] / "shared" / "h200"
pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="the recordings of a real H200 are not here")

BUSY, IDLE = Scenario.load("h200-busy"), Scenario.load("h200-idle")
# NVML has no call for these two, so gpulse says N/A.
DIFFERS = {
    "-q": {"GPU Part Number", "Sparse Operation Mode"},
    "-q -x": {"gpu_part_number", "sparse_operation_mode"},
}
MOVING = re.compile(
    r"Timestamp|Throughput|Power Capping|^ +(GPU|Memory|Graphics|SM|Video|Max|Min|Avg|Duration|Number of Samples) +:|"
    r"Current Temp|T\.Limit Temp|Power Draw|Process ID|Name  |Used |Free  |"
    r"<(timestamp|[tr]x_util|\w*sw_power_cap>|gpu_util|memory_util|gpu_temp|gpu_temp_tlimit|memory_temp|average_power|"
    r"instant_power|graphics_clock|sm_clock|mem_clock|video_clock|pid|process_name|used|free)"
)
LOG_SECTIONS = (
    "MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE",
    "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "ROW_REMAPPER", "VOLTAGE",
)  # fmt: skip
SECTION_DIFFERS = {"PERFORMANCE": {"Sparse Operation Mode"}}


def recorded(command: str, file: str = "smi.txt") -> list[str]:
    """The lines that nvidia-smi wrote for a command."""
    after = (RECORDED / file).read_text().split(f"$ nvidia-smi{f' {command}' if command else ''}\n", 1)[1]
    return after.split("\n$ nvidia-smi", 1)[0].split("\n[exit", 1)[0].rstrip("\n").split("\n")


def written(lab: Lab, command: str, scenario: Scenario = BUSY) -> list[str]:
    answer = lab.run(scenario, "smi", *command.split())
    assert (answer.code, answer.err) == (0, "")
    return answer.out.rstrip("\n").split("\n")


def shape(line: str) -> str:
    """A line without its numbers and names where they change from second to second."""
    if not MOVING.search(line):
        return line
    plain = re.sub(r"(: |<process_name>|<timestamp>)\S*(python\S*|\w{3} \w{3} .*20\d\d)", r"\1TEXT", line)
    return re.sub(r"\d+(\.\d+)?", "#", plain)


def label(line: str) -> str:
    found = re.search(r"<(\w+)>", line) or re.match(r" *([^:]*?) *:", line)
    return found[1] if found else line


def differences(theirs: list[str], ours: list[str]) -> set[str]:
    """The labels of the lines that differ; a line too many or too few shows as itself."""
    if len(theirs) != len(ours):
        return {f"{len(theirs)} lines, not {len(ours)}"}
    pairs = zip(map(shape, theirs), map(shape, ours), strict=True)
    return {label(their) for their, our in pairs if their != our}


@pytest.mark.parametrize("command", ["-q", "-q -x"])
def test_the_log_differs_only_where_listed(lab: Lab, command: str) -> None:
    assert differences(recorded(command), written(lab, command)) == DIFFERS[command]


@pytest.mark.parametrize("moment", ["idle", "load"])
@pytest.mark.parametrize("section", LOG_SECTIONS)
def test_each_section_differs_only_where_listed(lab: Lab, section: str, moment: str) -> None:
    theirs = recorded(f"-q -d {section}", f"smi-every-field-{moment}.txt")
    ours = written(lab, f"-q -d {section}", BUSY if moment == "load" else IDLE)
    assert differences(theirs, ours) == SECTION_DIFFERS.get(section, set())


def test_the_table_is_the_same_to_the_character(lab: Lab) -> None:
    moment = BUSY.gpu(0, temperature=63, power="691.29 W", utilization__gpu=100)
    theirs, ours = recorded(""), written(lab, "", moment)
    row = next(at for at, line in enumerate(theirs) if "python3" in line)
    blank = re.compile(r"  +\d+      C   \S+ +")
    assert blank.sub(" ", ours[row]) == blank.sub(" ", theirs[row])  # another process, the same columns
    assert len(ours[row]) == len(theirs[row])
    assert [len(ours[0]), *ours[1:row], *ours[row + 1 :]] == [len(theirs[0]), *theirs[1:row], *theirs[row + 1 :]]


@pytest.mark.parametrize("command", ["topo -m", "-L"])
def test_what_never_changes_is_the_same(lab: Lab, command: str) -> None:
    assert written(lab, command) == recorded(command)


def test_a_gpu_without_nvlink_has_no_lines(lab: Lab) -> None:
    assert written(lab, "nvlink -s") == recorded("nvlink -s") == [""]


@pytest.mark.parametrize("file", ["smi-every-field-idle.txt", "smi-every-field-load.txt"])
@pytest.mark.parametrize("command", ["dmon -c 3", "dmon -s pucvmet -c 2", "pmon -c 3", "pmon -s um -c 2"])
def test_scrolling_columns_are_the_same(lab: Lab, command: str, file: str) -> None:
    def kinds(line: str) -> list[str]:
        return ["-" if cell == "-" else "#" if cell.isdecimal() else cell[:6] for cell in line.split()]

    # one sample is enough to see the columns
    ours = written(lab, re.sub(r"-c \d", "-c 1", command), IDLE if "idle" in file else BUSY)
    theirs = recorded(command, file)
    assert ours[:2] == theirs[:2]
    assert kinds(ours[2]) == kinds(theirs[2])
