"""The columns of a line per GPU: what fits, in which order, and never more than the room."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.present.gpu_columns import GpuColumns
from gpulse.present.theme import TRUE_COLOR, Theme
from tests.unit.snapshots import snapshots

_VALUES = {
    "utilization": 97, "memory_used": 66.8 * 2**30, "memory_total": 79.6 * 2**30, "memory_percent": 84, "temperature": 66,
    "power_draw": 690, "power_limit": 700, "sm_active": 92, "tensor_active": 61, "dram_active": 41,
}  # fmt: skip


def _gpu(name: str = "NVIDIA H100", **values: float) -> Gpu:
    return Gpu({"index": 0, "name": name, **_VALUES, **values})


@pytest.mark.parametrize(
    ("room", "titles", "numbers"),
    [
        (16, "UTIL   MEM  TEMP", " 97%   84%  66°C"),
        (22, "UTIL   MEM  TEMP POWER", " 97%   84%  66°C  690W"),
        (34, "UTIL       MEMORY     TEMP POWER", "███▉  97%  ███▍  84%  66°C  690W"),
        (56, "UTIL        SM TENS DRAM  MEMORY              TEMP POWER",
         "███▉  97%   92   61   41  ███▍ 66.8/79.6 GiB  66°C  690W"),
        (61, "UTIL        SM TENS DRAM  MEMORY              TEMP      POWER",
         "███▉  97%   92   61   41  ███▍ 66.8/79.6 GiB  66°C  690/700 W"),
    ],
)  # fmt: skip
def test_more_room_shows_more(room: int, titles: str, numbers: str) -> None:
    columns = GpuColumns([_gpu()], room, Theme(), 0, below=room > 50, named=False)
    assert columns.titles() == titles
    assert columns.numbers(_gpu())[0] == numbers


def test_amounts_come_before_bars_where_notes_stand_below() -> None:
    assert GpuColumns([_gpu()], 36, Theme(), 0, below=True).numbers(_gpu())[0] == " 97%  66.8/79.6 GiB  66°C  690/700 W"


def test_notes_stand_beside_the_numbers_where_there_is_enough_room() -> None:
    assert GpuColumns([_gpu()], 90, Theme(), 40, below=True).notes == 0
    assert GpuColumns([_gpu()], 100, Theme(), 40, below=True).notes >= 30
    assert GpuColumns([_gpu()], 100, Theme(), 5, below=True).notes == 7


def test_the_worst_note_has_room_before_amounts() -> None:
    columns = GpuColumns([_gpu()], 43, Theme(), 40)
    assert columns.notes == 11
    assert "GiB" not in columns.numbers(_gpu())[0]


def test_names_that_differ_come_before_activity_and_equal_ones_last() -> None:
    mixed = [_gpu(), _gpu("NVIDIA A100-SXM4-80GB")]
    assert GpuColumns(mixed, 70, Theme(), 0, below=True).name == len("A100-SXM4-80GB") + 2
    assert GpuColumns([_gpu()] * 2, 70, Theme(), 40, below=True).name == 0
    assert GpuColumns([_gpu()] * 2, 150, Theme(), 40, below=True).name == len("H100") + 2
    assert GpuColumns([_gpu()] * 2, 150, Theme(), 40, below=True, name_width=0).name == 0


def test_a_share_being_measured_is_not_a_missing_one() -> None:
    gpu = Gpu({"utilization": 1}, {"sm_active": "pending", "tensor_active": "unsupported"})
    assert GpuColumns([gpu], 80, Theme(), 0).numbers(gpu)[0].split()[2:5] == ["…", "-", "-"]


def test_bars_are_shaded_only_if_asked_for() -> None:
    theme = Theme(TRUE_COLOR)
    assert any("~" in style for style in GpuColumns([_gpu()], 80, theme, 0, shaded=True).numbers(_gpu())[1])
    assert not any("~" in style for style in GpuColumns([_gpu()], 80, theme, 0).numbers(_gpu())[1])


@given(snapshots(), st.integers(25, 250), st.integers(0, 80), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_machine_fits(sample: Snapshot, room: int, notes: int, below: bool, unicode: bool) -> None:
    columns = GpuColumns(sample.gpus, room, Theme(0, unicode), notes, below=below)
    for gpu in sample.gpus:
        text, styles = columns.numbers(gpu)
        assert len(text) == len(styles) == len(columns.titles())
        assert columns.name + len(text) + (columns.notes or columns.flag) <= max(room, len(text))
