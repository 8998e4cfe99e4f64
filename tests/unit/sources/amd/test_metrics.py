"""gpu_metrics: layouts as the kernel declares them, fields of all ones left out, cut tables refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.sources.amd.metrics import MetricsTable, layout_of, parse_table, partition_layout
from tests.unit.sources.trees import packed

# Computed with a C compiler from kgd_pp_interface.h: version → size of the structure, and some offsets in it.
LAYOUTS = {
    (1, 0): (80, {"system_clock_counter": 8, "temperature_edge": 16, "energy_accumulator": 36, "pcie_link_width": 74}),
    (1, 1): (96, {"average_gfx_activity": 16, "energy_accumulator": 24, "current_gfxclk": 54, "temperature_hbm": 88}),
    (1, 2): (104, {"current_fan_speed": 72, "pcie_link_speed": 76, "firmware_timestamp": 96}),
    (1, 3): (120, {"throttle_status": 68, "voltage_soc": 104, "indep_throttle_status": 112}),
    (1, 4): (288, {"vcn_activity": 16, "energy_accumulator": 24, "pcie_link_width": 48, "xgmi_read_data_acc": 104, "current_uclk": 280}),
    (1, 5): (360, {"jpeg_activity": 24, "energy_accumulator": 88, "xgmi_write_data_acc": 240, "current_gfxclk": 312, "current_uclk": 352}),
    (1, 6): (1664, {"accumulation_counter": 32, "ppt_residency_acc": 40, "current_gfxclk": 264, "num_partition": 306}),
    (1, 7): (2208, {"energy_accumulator": 24, "accumulation_counter": 40, "xgmi_link_status": 264, "num_partition": 338}),
    (1, 8): (3360, {"firmware_timestamp": 288, "current_gfxclk": 296, "current_uclk": 336}),
    (2, 0): (120, {"system_clock_counter": 8, "temperature_gfx": 16, "average_gfxclk": 68}),
    (2, 1): (120, {"average_gfx_activity": 28, "system_clock_counter": 32, "average_socket_power": 40, "current_gfxclk": 76}),
    (2, 2): (128, {"throttle_status": 108, "fan_pwm": 112, "indep_throttle_status": 120}),
    (2, 3): (152, {"average_temperature_gfx": 128}),
    (2, 4): (168, {"average_cpu_voltage": 152}),
    (3, 0): (264, {"temperature_skin": 40, "vcn_activity": 44, "average_dram_reads": 94, "average_socket_power": 112, "average_gfxclk": 174,
                   "average_uclk": 186, "throttle_residency_prochot": 228}),
}  # fmt: skip
_LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}


@pytest.mark.parametrize("version", LAYOUTS)
def test_fields_are_where_the_kernel_puts_them(version: tuple[int, int]) -> None:
    layout = layout_of(version)
    assert layout is not None
    size, offsets = LAYOUTS[version]
    assert {name: layout.fields[name].offset for name in offsets} == offsets
    assert layout.size <= size


@pytest.mark.parametrize("version", LAYOUTS)
def test_every_field_is_read_back_and_all_ones_are_nothing(version: tuple[int, int]) -> None:
    layout = layout_of(version)
    assert layout is not None
    size = LAYOUTS[version][0]
    for name, field in layout.fields.items():
        table = parse_table(packed(version, size, {field.offset: (_LETTERS[field.size], 77)}) + b"\0" * 500)
        assert table is not None
        assert table.number(name) == 77
        others = [other for other in layout.fields if other != name]
        assert [table.number(other) for other in others] == [None] * len(others)


@pytest.mark.parametrize(
    ("version", "size", "stride"), [((1, 6), 1664, 168), ((1, 7), 2208, 232), ((1, 8), 3360, 376), ((1, 8), 3872, 440)]
)
def test_partitions_are_found_in_both_sizes_of_v1_8(version: tuple[int, int], size: int, stride: int) -> None:
    layout = layout_of(version)
    part = partition_layout(stride)
    assert layout is not None
    assert part is not None
    start = 312 if version == (1, 6) else 344
    fields = {
        layout.fields["num_partition"].offset: ("H", 2),
        start: ("I", 40),
        start + 4: ("I", 60),
        start + stride: ("I", 8),
    }
    table = parse_table(packed(version, size, fields))
    assert table is not None
    assert [found["gfx_busy_inst"] for found in table.partitions()] == [[40, 60], [8]]
    assert part.fields["gfx_busy_acc"].offset == (104 if stride < 300 else 120)


def attribute(number: int, kind: int, unit: int, values: bytes, instances: int) -> bytes:
    return struct.pack("<Q", unit << 24 | kind << 20 | number << 10 | instances) + values


def test_attributes_of_v1_9_are_read_by_what_they_say_of_themselves() -> None:
    attributes = [
        attribute(0, 2, 2, struct.pack("<H", 61), 1),
        attribute(700, 6, 0, struct.pack("<Q", 5), 1),  # an id of a later kernel
        attribute(33, 2, 1, struct.pack("<4H", 1200, 0xFFFF, 1300, 1250), 4),
        attribute(11, 6, 0, struct.pack("<Q", 1 << 40), 1),  # a residency that once had 32 bits
        attribute(2, 3, 2, struct.pack("<h", -4), 1),
    ]
    body = struct.pack("<i", len(attributes)) + b"".join(attributes)
    table = parse_table(struct.pack("<HBB", 4 + len(body), 1, 9) + body + b"\0" * 64)
    assert table is not None
    assert table.number("temperature_hotspot") == 61
    assert table.numbers("current_gfxclk") == [1200, 1300, 1250]
    assert table.number("ppt_residency_acc") == 1 << 40
    assert table.number("temperature_vrsoc") == -4
    assert table.number("average_gfx_activity") is None


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\x78\0",
        b"\x78\0\x01\x03" + b"\1" * 50,
        b"\x08\0\x07\x07" + b"\0" * 200,
        b"\x0a\0\x01\x03" + b"\0" * 300,
    ],
)
def test_a_table_that_is_cut_or_not_known_is_none(content: bytes | None) -> None:
    assert parse_table(content) is None


@settings(deadline=None)
@given(st.binary(max_size=400), st.sampled_from([*LAYOUTS, (1, 9), (4, 2)]))
def test_whatever_the_firmware_writes_nothing_is_raised(content: bytes, version: tuple[int, int]) -> None:
    table = parse_table(struct.pack("<HBB", min(len(content) + 4, 65535), *version) + content)
    assert table is None or isinstance(table, MetricsTable)
    if table is not None:
        assert all(value >= -(1 << 63) for value in table.numbers("current_gfxclk"))
        table.partitions()
