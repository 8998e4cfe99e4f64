"""The supported clocks of the long form."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.query.log import log_keys, log_text, log_xml

GPU = Gpu({"index": 0, "pci_bus_id": "00000000:00:06.0", "clocks_supported": ("3201:1980,1965", "2201:345")})


def value(gpu: Gpu, name: str) -> str:
    return {"pci.bus_id": "00000000:00:06.0", "count": "1"}.get(name, "[N/A]")


def test_each_memory_clock_stands_above_its_graphics_clocks() -> None:
    lines = log_text(Snapshot(0.0, (GPU,)), value, ("SUPPORTED_CLOCKS",))
    assert [line.split(":")[0].rstrip() + ":" + line.split(": ")[-1] for line in lines if " MHz" in line] == [
        "        Memory:3201 MHz",
        "            Graphics:1980 MHz",
        "            Graphics:1965 MHz",
        "        Memory:2201 MHz",
        "            Graphics:345 MHz",
    ]


def test_the_xml_nests_them_as_consumers_expect() -> None:
    root = ElementTree.fromstring(log_xml(Snapshot(0.0, (GPU,)), value, ("SUPPORTED_CLOCKS",)))
    clocks = root.findall("gpu/supported_clocks/supported_mem_clock")
    assert [clock.findtext("value") for clock in clocks] == ["3201 MHz", "2201 MHz"]
    assert [each.text for each in clocks[0].findall("supported_graphics_clock")] == ["1980 MHz", "1965 MHz"]


def test_a_gpu_that_does_not_say_has_one_line_with_the_reason() -> None:
    gpu = Gpu({"index": 0}, {"clocks_supported": "denied"})
    lines = log_text(Snapshot(0.0, (gpu,)), value, ("SUPPORTED_CLOCKS",))
    assert next(line for line in lines if "Supported Clocks" in line).endswith(": Insufficient Permissions")


def test_only_this_section_asks_for_them() -> None:
    assert "clocks_supported" in log_keys(("SUPPORTED_CLOCKS",))
    assert "clocks_supported" not in log_keys(("MEMORY",))
