"""Views: what each needs, and what it writes of a snapshot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu, Process
from gpulse.model.codec import from_line, from_plain
from gpulse.model.snapshot import Snapshot
from gpulse.present.text import width
from gpulse.surfaces.query.fields import app_field_named, field_named
from gpulse.surfaces.query.scroll import HEADER_EVERY, DeviceScroll, ProcessScroll
from gpulse.surfaces.query.views import (
    Csv,
    Json,
    ListingView,
    Prometheus,
    TableView,
    View,
    wanted_of,
)
from tests.unit.snapshots import snapshots

if TYPE_CHECKING:
    from gpulse.surfaces.query.views import Asked

MIB = 1 << 20


def gpus(*names: str) -> Asked:
    return [(name, field_named(name)) for name in names]


def apps(*names: str) -> Asked:
    return [(name, app_field_named(name)) for name in names]


def one(gpu: Gpu) -> Snapshot:
    return Snapshot(0.0, (gpu,))


PAIR = Snapshot(
    0.0,
    (
        Gpu(
            {"index": 0, "name": "A", "utilization": 7, "memory_used": 5 * MIB},
            processes=(
                Process({"pid": 11, "type": "C", "memory_used": MIB}),
                Process({"pid": 12, "type": "G", "memory_used": MIB}),
                Process({"pid": 13, "type": "C+G"}),
            ),
        ),
        Gpu({"index": 1, "name": "B", "utilization": 100}, {"memory_used": "lost"}, state="lost"),
    ),
)
EVERY_VIEW = [
    Csv(gpus("index", "name", "uuid", "pstate", "throttle_reasons")),
    Csv(apps("pid", "process_name", "gpu_name"), apps=True),
    TableView(gpus("index", "name", "serial")),
    TableView(apps("pid", "process_name"), apps=True),
    Json(gpus("name"), compact=True),
    Json(gpus("name"), compact=False),
    Prometheus(gpus("name", "energy", "power.draw", "persistence_mode")),
    DeviceScroll("pucmeta"),
    ProcessScroll("um"),
    ListingView(),
]


def test_csv_keeps_the_order_asked_and_says_every_title_nvidia_smis_way() -> None:
    view = Csv(gpus("memory_used", "memory.used", "utilization.gpu", "gpu_name", "clocks.sm"))
    assert view.head() == [
        "memory_used [MiB], memory.used [MiB], utilization.gpu [%], name, clocks.current.sm [MHz]",
    ]
    assert view.lines(PAIR) == [
        "5 MiB, 5 MiB, 7 %, A, [N/A]",
        "[GPU is lost], [GPU is lost], 100 %, B, [N/A]",
    ]


def test_csv_leaves_out_header_and_units_when_told() -> None:
    view = Csv(gpus("index", "memory.used"), header=False, units=False)
    assert view.head() == []
    assert view.lines(PAIR) == ["0, 5", "1, [GPU is lost]"]


def test_only_compute_processes_are_compute_processes() -> None:
    view = Csv(apps("pid", "used_memory", "gpu_name"), apps=True)
    assert view.lines(PAIR) == ["11, 1 MiB, A", "13, [N/A], A"]


def test_columns_are_asked_for_and_nothing_else() -> None:
    wanted = wanted_of(gpus("power.draw", "name"), False)
    assert wanted.gpu == {"index", "uuid", "power_draw", "name"}
    assert wanted.process is None
    wanted = wanted_of(apps("gpu_serial", "used_memory"), True)
    assert wanted.gpu == {"index", "uuid", "serial"}
    assert wanted.process == frozenset({"pid", "type", "memory_used"})


@pytest.mark.parametrize("view", EVERY_VIEW, ids=lambda view: type(view).__name__)
def test_a_view_wants_only_what_the_catalog_has(view: View) -> None:
    assert view.wanted.gpu <= GPU_METRICS.keys()
    assert (view.wanted.process or frozenset()) <= PROCESS_METRICS.keys()


def starts(line: str, texts: list[str]) -> list[int]:
    """The cells at which these texts begin."""
    return [width(line[: line.index(text)]) for text in texts]


def test_a_table_is_aligned_also_under_wide_characters() -> None:
    names = ["显卡显卡显卡", "x", "é" * 3, "カード"]
    found = tuple(Gpu({"index": at, "name": name, "serial": f"s{at}"}) for at, name in enumerate(names))
    lines = TableView(gpus("name", "serial")).lines(Snapshot(0.0, found))
    assert lines[0].split() == ["name", "serial"]
    assert {starts(line, [f"s{at}"])[0] for at, line in enumerate(lines[1:])} == {starts(lines[0], ["serial"])[0]}
    assert not any(line.endswith(" ") for line in lines)


def test_numbers_in_a_table_end_together() -> None:
    lines = TableView(gpus("utilization.gpu", "name")).lines(PAIR)
    assert len({line.index(text) for line, text in zip(lines, ("  name", "  A", "  B"), strict=True)}) == 1
    lines = TableView(apps("pid", "gpu_name"), apps=True).lines(
        one(Gpu({"name": "A"}, processes=(Process({"pid": 1234567}), Process({"pid": 8}))))
    )
    assert len({line.rindex("  ") for line in lines}) == 1
    assert lines[2].startswith("      8")


def test_json_is_the_snapshot_and_can_be_read_back() -> None:
    (line,) = Json(gpus("utilization.gpu"), compact=True).lines(PAIR)
    assert "\n" not in line
    (text,) = Json(gpus("utilization.gpu"), compact=False).lines(PAIR)
    assert "\n" in text
    assert json.loads(text) == json.loads(line)
    assert from_line(line) == from_plain(json.loads(text))


@pytest.mark.parametrize("compact", [True, False])
def test_json_holds_the_metrics_asked_for_and_what_the_gpu_is(compact: bool) -> None:
    (text,) = Json(gpus("utilization.gpu"), compact=compact).lines(PAIR)
    for gpu in json.loads(text)["gpus"]:
        told = {key for key in gpu.keys() & GPU_METRICS.keys() if GPU_METRICS[key].kind != "identity"}
        assert told == {"utilization"}
        assert not gpu["gaps"].keys() - {"utilization"}
        assert gpu["processes"] == []


@pytest.mark.parametrize("view", [DeviceScroll("u"), ProcessScroll("u")])
def test_a_header_stands_over_every_twenty_lines(view: View) -> None:
    lines = [line for _ in range(2 * HEADER_EVERY + 1) for line in view.lines(one(Gpu({"index": 0})))]
    titled = [at for at, line in enumerate(lines) if line.startswith("# gpu")]
    assert titled == [0, HEADER_EVERY + 2, 2 * HEADER_EVERY + 4]
    assert [at for at, line in enumerate(lines) if line.startswith("# Idx")] == [at + 1 for at in titled]
    assert HEADER_EVERY == 20


def test_a_sample_is_not_cut_by_a_header() -> None:
    view, eight = DeviceScroll("u"), Snapshot(0.0, tuple(Gpu({"index": at}) for at in range(8)))
    samples = [view.lines(eight) for _ in range(4)]
    assert [len(lines) for lines in samples] == [10, 8, 8, 10]


def test_samples_without_lines_bring_no_second_header() -> None:
    view = DeviceScroll("u")
    assert [len(view.lines(Snapshot(0.0, ()))) for _ in range(3)] == [2, 0, 0]


def test_a_listing_names_gpus_and_their_instances_as_nvidia_smi_does() -> None:
    parts = (Gpu({"index": 0, "name": "MIG 3g.40gb", "uuid": "MIG-1"}), Gpu({"index": 1, "uuid": "MIG-2"}))
    lines = ListingView().lines(
        Snapshot(0.0, (Gpu({"index": 0, "name": "A100", "uuid": "GPU-1"}, instances=parts), Gpu({})))
    )
    assert lines == [
        "GPU 0: A100 (UUID: GPU-1)",
        "  MIG 3g.40gb     Device  0: (UUID: MIG-1)",
        "  MIG             Device  1: (UUID: MIG-2)",
        "GPU ?: Unknown (UUID: N/A)",
    ]


@given(snapshots())
def test_whatever_a_snapshot_holds_every_line_is_printable(snapshot: Snapshot) -> None:
    for view in EVERY_VIEW:
        for text in (*view.head(), *view.lines(snapshot)):
            lines = text.split("\n") if isinstance(view, Json) else [text]
            assert all(line.isprintable() for line in lines), (view, text)
