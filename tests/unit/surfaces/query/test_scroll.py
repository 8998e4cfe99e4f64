"""Scrolling columns: dmon's and pmon's own lines, as they were recorded on an H200."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulse.cli.commands.query import VERB, _view
from gpulse.cli.options import parse
from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.sources.nvidia.gpm import METRICS
from gpulse.surfaces.query.scroll import DEVICE, GPM, GPU_ONLY, GROUPS, PROCESS, DeviceScroll, ProcessScroll

if TYPE_CHECKING:
    from gpulse.model.metric import Value

RECORDED = Path(__file__).parents[5] / "shared" / "h200"
MOMENTS = ("idle", "load")
LEFT_OUT = ("pviol", "tviol")  # the group v, which gpulse has not
NAMES = {  # what the numbers under dmon's titles are, and how much of them is one
    "pwr": ("power_draw", 1), "gtemp": ("temperature", 1), "mtemp": ("memory_temperature", 1),
    "sm": ("utilization", 1), "mem": ("memory_utilization", 1), "enc": ("encoder_utilization", 1),
    "dec": ("decoder_utilization", 1), "jpg": ("jpeg_utilization", 1), "ofa": ("ofa_utilization", 1),
    "mclk": ("clock_memory", 1), "pclk": ("clock_sm", 1), "fb": ("memory_used", 1 << 20), "bar1": ("bar1_used", 1 << 20),
    "ccpm": ("memory_protected_used", 1 << 20), "sbecc": ("ecc_corrected", 1), "dbecc": ("ecc_uncorrected", 1),
    "pci": ("pcie_replays", 1), "rxpci": ("pcie_rx", 10**6), "txpci": ("pcie_tx", 10**6),
}  # fmt: skip


def recorded(moment: str, command: str) -> list[str]:
    """What nvidia-smi wrote."""
    path = RECORDED / f"smi-every-field-{moment}.txt"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return path.read_text().split(f"$ nvidia-smi {command}\n")[1].split("[exit")[0].splitlines()


def without(lines: list[str], titles: tuple[str, ...]) -> list[str]:
    """The same lines with the columns of these titles cut out, each seven wide and ending where its title ends."""
    for title in titles:
        end = lines[0].index(f" {title} ") + 1 + len(title)
        lines = [line[: end - 7] + line[end:] for line in lines]
    return lines


def gpu_of(header: str, line: str) -> Gpu:
    cells = dict(zip(header.split()[2:], line.split()[1:], strict=True))
    values: dict[str, Value] = {NAMES[title][0]: int(text) * NAMES[title][1] for title, text in cells.items()}
    return Gpu({"index": int(line.split()[0]), **values})


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("groups", "command"), [("puc", "dmon -c 3"), ("pucmet", "dmon -s pucvmet -c 2")])
def test_gpus_are_written_as_dmon_writes_them(moment: str, groups: str, command: str) -> None:
    lines = recorded(moment, command)
    lines = without(lines, LEFT_OUT) if "m" in groups else lines
    gpus = tuple(gpu_of(lines[0], line) for line in lines[2:])
    assert DeviceScroll(groups).lines(Snapshot(0.0, gpus)) == lines


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("groups", "command"), [("u", "pmon -c 3"), ("um", "pmon -s um -c 2")])
def test_processes_are_written_as_pmon_writes_them(moment: str, groups: str, command: str) -> None:
    lines = recorded(moment, command)
    values: dict[str, Value] = {"encoder_utilization": 0, "decoder_utilization": 0, "memory_used": 1130 << 20}
    for line in lines[2:]:
        _, pid, kind, sm, memory, *_, name = line.split()
        told: dict[str, Value] = {} if pid == "-" else {"pid": int(pid), "type": kind, "name": name, **values}
        if pid != "-":
            told |= {"sm_utilization": int(sm), "memory_utilization": int(memory)}
        gpu = Gpu({"index": 0, "memory_protected_used": 0}, processes=(Process(told),) if told else ())
        assert ProcessScroll(groups).lines(Snapshot(0.0, (gpu,))) == [*lines[:2], line]


@pytest.mark.parametrize("groups", [*GROUPS, "".join(GROUPS)])
def test_every_group_has_its_columns_under_their_titles(groups: str) -> None:
    view = DeviceScroll(groups)
    assert {column.group for column in view.columns} == set(groups)
    gpu = Gpu({"index": 0} | dict.fromkeys((column.key for column in view.columns), 7 << 20))
    lines = view.lines(Snapshot(0.0, (gpu,)))
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1


def test_groups_come_in_dmons_order_however_they_are_asked() -> None:
    def titles(groups: str) -> list[str]:
        return _view(parse(VERB, [f"--scroll={groups}"])).lines(Snapshot(0.0))

    assert titles("cup") == titles("puc")


def test_every_column_is_of_the_catalog() -> None:
    assert {column.key for column in DEVICE} <= GPU_METRICS.keys()
    assert {column.key for column in PROCESS} <= {*PROCESS_METRICS, *GPU_ONLY, ""}


@pytest.mark.parametrize(
    ("groups", "values", "texts"),
    [
        ("p", {"power_draw": 690.99, "temperature": 0}, ["690", "0", "-"]),
        ("m", {"memory_used": (5 << 20) - 1, "bar1_used": (5 << 20) - 1}, ["5", "4", "-"]),
        ("t", {"pcie_rx": 14_999_999.0, "pcie_tx": 0.0}, ["14", "0"]),
        ("c", {}, ["-", "-"]),
    ],
)
def test_numbers_are_cut_zero_is_zero_and_nothing_is_a_dash(
    groups: str, values: dict[str, Value], texts: list[str]
) -> None:
    *_, row = DeviceScroll(groups).lines(Snapshot(0.0, (Gpu(values),)))
    assert row.split() == ["-", *texts]


def test_a_gpu_without_processes_has_a_line_and_those_of_instances_have_theirs() -> None:
    part = Gpu({}, processes=(Process({"pid": 5, "name": "in"}),))
    gpus = (Gpu({"index": 0}), Gpu({"index": 1}, processes=(Process({"pid": 4, "name": "on"}),), instances=(part,)))
    rows = [row.split() for row in ProcessScroll("m").lines(Snapshot(0.0, gpus))[2:]]
    assert [(row[0], row[1], row[-1]) for row in rows] == [("0", "-", "-"), ("1", "4", "on"), ("1", "5", "in")]


def test_a_name_cannot_act_on_the_terminal_nor_break_the_line() -> None:
    gpu = Gpu({"index": 0}, processes=(Process({"pid": 4, "name": "\x1b[2Jx\ny", "type": "\x1bC"}),))
    *_, row = ProcessScroll("u").lines(Snapshot(0.0, (gpu,)))
    assert row.isprintable()


@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        (("throttle_time_power_cap", "throttle_time_thermal"), ["50", "1"]),
        (("throttle_time_power_cap",), ["50", "-"]),
        (("throttle_time_thermal_hardware",), ["-", "1"]),
        ((), ["-", "-"]),
    ],
)
def test_a_violation_that_is_not_counted_is_a_dash(keys: tuple[str, ...], texts: list[str]) -> None:
    scroll = DeviceScroll("v")
    scroll.note(Snapshot(0.0, (Gpu(dict.fromkeys(keys, 1.0)),)))
    *_, row = scroll.lines(Snapshot(2.0, (Gpu(dict.fromkeys(keys, 2.0)),)))
    assert row.split() == ["-", *texts]


def test_gpm_metrics_follow_the_columns_of_dmon() -> None:
    """As nvidia-smi 580 writes them: ten wide with a blank behind, percentages and MiB/s."""
    gpu = Gpu({"index": 0, "power_draw": 690.4, "temperature": 62, "memory_temperature": 51, "dram_active": 16.1,
               "sm_active": 82.3, "pcie_rx": 7428.06 * (1 << 20)})  # fmt: skip
    assert DeviceScroll("p", gpm=(2, 10, 21, 61)).lines(Snapshot(0.0, (gpu,))) == [
        "# gpu    pwr  gtemp  mtemp     smutil       dram      pcirx      nvltx ",
        "# Idx      W      C      C      GPM:%      GPM:%  GPM:MiB/s  GPM:MiB/s ",
        "    0    690     62     51         82         16       7428          - ",
    ]


def test_a_gpu_without_gpm_has_no_gpm_metrics() -> None:
    """Its PCIe traffic is known from other counters, which are not GPM's."""
    old = Gpu({"index": 0, "power_draw": 118.0, "pcie_rx": 5e6}, {"dram_active": "unsupported"})
    assert DeviceScroll("p", gpm=(2, 21)).lines(Snapshot(0.0, (old,)))[2].split() == ["0", "118", "-", "-", "-", "-"]
    assert GPM.keys() == {number for number, _ in METRICS.values()}
