"""A PCIe link below its maximum: what fires, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.model.catalog import Gpu
from gpulse.present.alerts import alert_text
from gpulse.present.words import remarks
from tests.unit.analysis.alerts.machines import START, book, gpu, turns, watch

FULL = {"pcie_gen": 5, "pcie_gen_max": 5, "pcie_width": 16, "pcie_width_max": 16}


def link(**changes: float) -> Gpu:
    values: dict[str, Any] = {"utilization": 90, **FULL, **changes}
    return gpu(1, **values)


def test_a_narrow_link_under_load_fires_once_and_clears_when_it_is_wide_again() -> None:
    found = watch(book("pcie_degraded"), lambda at: link(pcie_width=4 if at < 100 else 16), 300)
    assert turns(found) == [("pcie_degraded", "fire", 30.0), ("pcie_degraded", "clear", 160.0)]
    assert alert_text(found[0]) == "GPU 1: the link is below its maximum under load: PCIe x4 of x16"


def test_a_slow_link_at_idle_is_normal() -> None:
    assert watch(book("pcie_degraded"), lambda at: link(pcie_gen=1, utilization=0), 300) == []


def test_a_pause_does_not_clear() -> None:
    found = watch(book("pcie_degraded"), lambda at: link(pcie_width=4, utilization=90 if at < 60 else 0), 600)
    assert turns(found) == [("pcie_degraded", "fire", 30.0)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pcie_width": 4}, ["PCIe x4 of x16"]),
        ({"pcie_gen": 1}, ["PCIe Gen 1 of Gen 5"]),
        ({"pcie_gen": 1, "pcie_width": 4}, ["PCIe Gen 1 x4 of Gen 5 x16"]),
        ({"pcie_gen": 1, "utilization": 0}, []),
        ({}, []),
    ],
)
def test_a_glance_says_it(changes: dict[str, float], words: list[str]) -> None:
    assert [text for text, _, _ in remarks(link(**changes))] == words


def test_link_errors_that_grow_fire_once_by_kind_and_clear_after_a_while() -> None:
    def errors(at: float) -> Gpu:
        return link(pcie_replays=7 if at < 10 else 9, nvlink_crc_errors=0 if at < 20 else 5)

    found = watch(book("link_errors"), errors, 900)
    assert [(one.what, one.state, one.time - START) for one in found] == [
        ("pcie_replays", "fire", 10.0),
        ("nvlink_crc_errors", "fire", 20.0),
        ("pcie_replays", "clear", 611.0),
        ("nvlink_crc_errors", "clear", 621.0),
    ]
    assert alert_text(found[0]) == "GPU 1: 2 new PCIe replays; check slot, riser and bridge"
