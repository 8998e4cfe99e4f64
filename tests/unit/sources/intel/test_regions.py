"""The drivers' answers about memory: regions as their headers lay them out, and zeros that only mean that we may not know."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from gpulse.sources.intel.sensors import may_see_usage, parse_i915, parse_xe
from tests.unit.sources.trees import write_tree


def region(kind: int, first: int, second: int) -> bytes:
    return struct.pack("<HHIQQ", kind, 0, 4096, first, second).ljust(88, b"\0")


def xe(*regions: bytes) -> bytes:
    return struct.pack("<II", len(regions), 0) + b"".join(regions)


def i915(*regions: bytes) -> bytes:
    return struct.pack("<IIII", len(regions), 0, 0, 0) + b"".join(regions)


@pytest.mark.parametrize(("used", "may_see", "expected"), [(3 << 30, True, 3 << 30), (0, True, 0), (0, False, None)])
def test_xe_says_total_and_used(used: int, may_see: bool, expected: int | None) -> None:
    memory = parse_xe(xe(region(0, 64 << 30, 1 << 30), region(1, 12 << 30, used)), may_see)
    assert memory is not None
    assert (memory.total, memory.used) == (12 << 30, expected)


@pytest.mark.parametrize(
    ("free", "may_see", "expected"), [(4 << 30, True, 2 << 30), (6 << 30, False, None), (6 << 30, True, 0)]
)
def test_i915_says_total_and_free(free: int, may_see: bool, expected: int | None) -> None:
    memory = parse_i915(i915(region(0, 64 << 30, 60 << 30), region(1, 6 << 30, free)), may_see)
    assert memory is not None
    assert (memory.total, memory.used) == (6 << 30, expected)


def test_a_gpu_without_memory_of_its_own_and_a_cut_answer_are_nothing() -> None:
    assert parse_xe(xe(region(0, 64 << 30, 1)), True) is None
    assert parse_i915(i915(region(1, 6 << 30, 0))[:50], True) is None
    assert parse_xe(b"", True) is None


@pytest.mark.parametrize(
    ("capabilities", "sees"), [("0000000000000000", False), ("000001ffffffffff", True), ("0000004000000000", True)]
)
def test_the_right_to_see_usage_is_a_capability(tmp_path: Path, capabilities: str, sees: bool) -> None:
    write_tree(tmp_path, {"proc/self/status": f"Name:\tx\nCapEff:\t{capabilities}\n"})
    assert may_see_usage(str(tmp_path)) is sees
