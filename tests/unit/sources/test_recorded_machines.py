"""Machines that others recorded, where they lie beside the checkout: each reads as it was said to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import make_source
from tests.unit.sources.trees import SHARED

EXPECTED: dict[str, Any] = (
    json.loads((SHARED / "EXPECTED.json").read_text()) if (SHARED / "EXPECTED.json").exists() else {}
)
TREES = sorted(name for name in EXPECTED if name.startswith(("amd/", "intel/")))
KEYS = {
    "util_pct": "utilization",
    "mem_busy_pct": "memory_utilization",
    "power_avg_w": "power_draw",
    "power_cap_w": "power_limit",
    "fan_pct": "fan_speed",
    "sclk_mhz": "clock_sm",
    "mclk_mhz": "clock_memory",
    "pcie_gen": "pcie_gen",
    "pcie_width": "pcie_width",
    "slot": "pci_bus_id",
}
pytestmark = pytest.mark.skipif(not EXPECTED, reason="the recorded machines are not beside this checkout")


def read(name: str) -> Snapshot:
    vendor = name.partition("/")[0]
    sampler = Sampler(make_source(f"{vendor}:{SHARED / name}"), EVERYTHING).open()
    try:
        sampler.read()
        return sampler.read()
    finally:
        sampler.close()


def temperatures(gpu: Gpu) -> dict[str, float | None]:
    return {
        "edge": gpu.temperature,
        "junction": gpu.hotspot_temperature,
        "mem": gpu.memory_temperature,
        "temp1": gpu.temperature,
        "pkg": gpu.temperature,
        "vram": gpu.memory_temperature,
    }


@pytest.mark.parametrize("name", TREES)
def test_a_recorded_machine_reads_as_expected(name: str) -> None:
    snapshot = read(name)
    assert len(snapshot.gpus) == len(EXPECTED[name])
    for gpu, expected in zip(snapshot.gpus, EXPECTED[name], strict=True):
        for word, key in KEYS.items():
            if word in expected:
                assert gpu.get(key) == expected[word], word
        check_memory(gpu, expected)
        known = temperatures(gpu)
        for label, celsius in expected.get("temps_c", {}).items():
            assert label not in known or known[label] == celsius, label
        if speeds := expected.get("fan_rpm"):
            assert gpu.fan_rpm == max(speeds.values())


def check_memory(gpu: Gpu, expected: dict[str, Any]) -> None:
    if "vram_total_bytes" not in expected:
        assert gpu.memory_total is None
        return
    used, total = expected["vram_used_bytes"], expected["vram_total_bytes"]
    if gpu.memory_unified:
        used, total = used + expected["gtt_used_bytes"], total + expected["gtt_total_bytes"]
    assert (gpu.memory_used, gpu.memory_total) == (used, total)


@pytest.mark.parametrize("name", TREES)
def test_a_tree_that_stands_still_has_no_rates(name: str) -> None:
    for gpu in read(name).gpus:
        if gpu.vendor == "intel":
            assert gpu.utilization is None
            assert gpu.power_draw is None


def test_only_the_apus_are_unified() -> None:
    unified = {name for name in TREES if name.startswith("amd/") and read(name).gpus[0].memory_unified}
    assert unified == {"amd/phoenix", "amd/strixpoint"}


XMLS = sorted(name for name in EXPECTED if name.endswith(".xml"))
_FIELDS = {
    "util": "utilization",
    "memutil": "memory_utilization",
    "fb_total": "memory_total",
    "fb_res": "memory_reserved",
    "fb_used": "memory_used",
    "fb_free": "memory_free",
    "temp": "temperature",
    "memtemp": "memory_temperature",
    "power": "power_draw",
    "limit": "power_limit",
    "fan": "fan_speed",
    "pstate": "pstate",
    "gfx": "clock_graphics",
    "mem": "clock_memory",
    "gen": "pcie_gen",
    "width": "pcie_width",
}


@pytest.mark.parametrize("name", XMLS)
def test_a_recorded_log_reads_as_expected(name: str) -> None:
    sampler = Sampler(make_source(f"smi:{SHARED / name}"), EVERYTHING).open()
    snapshot = sampler.read()
    sampler.close()
    assert dict(snapshot.driver) == {"version": EXPECTED[name]["driver"], "cuda": EXPECTED[name]["cuda"]}
    assert len(snapshot.gpus) == EXPECTED[name]["n"]
    for gpu, expected in zip(snapshot.gpus, EXPECTED[name]["gpus"], strict=True):
        assert (gpu.pci_bus_id, gpu.name) == (expected["id"], expected["name"])
        assert len(gpu.processes) == expected["nproc"]
        for word, key in _FIELDS.items():
            assert gpu.get(key) == plain(expected[word]), word


def plain(text: str) -> float | None:
    """The number of `22 MiB`, `25.58 W`, `P8` or `16x` in our units."""
    words = text.removeprefix("P").removesuffix("x").split()
    return None if text == "N/A" else float(words[0]) * (1 << 20 if words[-1] == "MiB" else 1)
