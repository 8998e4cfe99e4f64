"""Each threshold of a built-in rule, just on either side of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, watch

MIB = 1 << 20
SLOW = {"pcie_width": 4, "pcie_width_max": 16}


@pytest.mark.parametrize(
    ("rule", "values", "fires"),
    [
        ("memory", {"memory_percent": 94.99}, False),
        ("memory", {"memory_percent": 95.0}, True),
        ("hot", {"temperature": 88.9}, False),
        ("hot", {"temperature": 89.0}, True),
        ("hot", {"temperature": 84.9, "temperature_limit": 86}, False),
        ("hot", {"temperature": 85.0, "temperature_limit": 86}, True),
        ("hot", {"memory_temperature": 99.9}, False),
        ("hot", {"memory_temperature": 100.0}, True),
        ("pcie_degraded", {**SLOW, "utilization": 49.9}, False),
        ("pcie_degraded", {**SLOW, "utilization": 50.0}, True),
        ("pcie_degraded", {**SLOW, "utilization": 0, "pcie_rx": 0.3e9 - 1}, False),
        ("pcie_degraded", {**SLOW, "utilization": 0, "pcie_rx": 0.3e9}, True),
        ("pcie_degraded", {"pcie_width": 15.9, "pcie_width_max": 16, "utilization": 99}, True),
        ("pcie_degraded", {"pcie_width": 16, "pcie_width_max": 16, "utilization": 99}, False),
        ("throttled", {"throttle_reasons": ("sw_power_cap",)}, False),
        ("throttled", {"throttle_reasons": ("sw_thermal_slowdown",)}, True),
        ("throttled", {"throttle_reasons": ("hw_power_brake_slowdown",)}, True),
    ],
)
def test_a_value_just_below_and_at_its_threshold(rule: str, values: dict[str, Any], fires: bool) -> None:
    assert bool(watch(book(rule), lambda at: gpu(**values), 120)) is fires


@pytest.mark.parametrize(
    ("held", "cpu", "use", "fires"),
    [
        (500 * MIB - 1, 0.0, 0.0, False),
        (500 * MIB, 0.0, 0.0, True),
        (500 * MIB, 29.9, 0.0, True),
        (500 * MIB, 30.0, 0.0, False),
        (500 * MIB, 0.0, 0.99, True),
        (500 * MIB, 0.0, 1.0, False),
    ],
)
def test_an_idle_allocation_at_its_thresholds(held: int, cpu: float, use: float, fires: bool) -> None:
    holder = process(held=held, cpu_percent=cpu)
    found = watch(book("idle_allocation"), lambda at: gpu(utilization=use, processes=[holder]), 1000, step=10)
    assert bool(found) is fires


@pytest.mark.parametrize(
    ("rule", "values", "patience"),
    [
        ("lost", {"state": "timeout"}, 10),
        ("lost", {"state": "lost"}, 0),
        ("hot", {"temperature": 99}, 30),
        ("memory", {"memory_percent": 99}, 10),
        ("pcie_degraded", {**SLOW, "utilization": 99}, 30),
        ("throttled", {"throttle_reasons": ("sw_thermal_slowdown",)}, 3),
        ("idle_allocation", {"utilization": 0, "processes": [process(held=GIB, cpu_percent=0.0)]}, 900),
    ],
)
def test_how_long_it_must_last(rule: str, values: dict[str, Any], patience: int) -> None:
    found = watch(book(rule), lambda at: gpu(**(values if at >= 10 else {})), patience + 20)
    assert [one.time - START for one in found if one.state == "fire"] == [10 + patience]


@pytest.mark.parametrize(("rule", "patience"), [("hot", 60), ("memory", 30), ("throttled", 60)])
def test_how_long_it_must_be_over(rule: str, patience: int) -> None:
    bad: dict[str, Any] = {"temperature": 99, "memory_percent": 99, "throttle_reasons": ("sw_thermal_slowdown",)}
    well: dict[str, Any] = {"temperature": 40, "memory_percent": 40, "throttle_reasons": ()}
    found = watch(book(rule), lambda at: gpu(**(bad if at < 50 else well)), 50 + patience + 5)
    assert [one.time - START for one in found if one.state == "clear"] == [50 + patience]
