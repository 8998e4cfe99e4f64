"""What holds the clocks down: bits that all chips share, and counters that need two samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.sources.amd.source import AmdSource
from tests.unit.sources.amd.cards import radeon
from tests.unit.sources.trees import packed, read_one, write_tree

TABLE = "sys/class/drm/card0/device/gpu_metrics"


@pytest.mark.parametrize(
    ("bits", "words"),
    [(0, ()), (1 << 0, ("sw_power_cap",)), (1 << 6, ("sw_power_cap",)), (1 << 17, ("current_limit",)),
     (1 << 36, ("sw_thermal_slowdown",)), (1 << 47, ("hw_thermal_slowdown",)), (1 | 1 << 34, ("sw_power_cap", "sw_thermal_slowdown"))],
)  # fmt: skip
def test_bits_are_words(tmp_path: Path, bits: int, words: tuple[str, ...]) -> None:
    source = AmdSource(str(radeon(tmp_path, gpu_metrics=packed((1, 3), 120, {112: ("Q", bits)}))))
    assert read_one(source).values["throttle_reasons"] == words


def test_an_idle_gpu_is_held_by_nothing(tmp_path: Path) -> None:
    table = packed((1, 3), 120, {112: ("Q", 1 << 36)})
    assert (
        read_one(AmdSource(str(radeon(tmp_path, gpu_metrics=table, gpu_busy_percent="0\n")))).values["throttle_reasons"]
        == ()
    )


def test_counters_that_grew_were_in_force_in_between(tmp_path: Path) -> None:
    def table(ppt: int, heat: int) -> bytes:
        return packed((1, 6), 1664, {36: ("I", 0), 40: ("I", ppt), 44: ("I", heat)})

    source = AmdSource(str(radeon(tmp_path, gpu_metrics=table(5, 9))))
    assert read_one(source).gaps["throttle_reasons"] == "pending"
    write_tree(tmp_path, {TABLE: table(8, 9)})
    assert read_one(source).values["throttle_reasons"] == ("sw_power_cap",)
    assert read_one(source).values["throttle_reasons"] == ()
    write_tree(tmp_path, {TABLE: table(0, 0)})  # the driver was loaded again
    assert read_one(source).values["throttle_reasons"] == ()


def test_without_a_table_nobody_says(tmp_path: Path) -> None:
    assert read_one(AmdSource(str(radeon(tmp_path)))).gaps["throttle_reasons"] == "unsupported"
