"""Verdicts about several GPUs of one job: stragglers, hangs, communication. One GPU cannot show them, so they are simulated."""

from __future__ import annotations

import gc
from typing import Any

from gpulse.analysis.diagnosis.judge import diagnose
from tests.unit.analysis.diagnosis.machines import COUNTERS, judged, keys, samples

SPINNING = {
    "sm_active": 12, "sm_occupancy": 1, "tensor_active": 0, "dram_active": 0.3, "fp32_active": 0, "integer_active": 2, "power_draw": 170,
}  # fmt: skip


def rank(number: int, **values: Any) -> dict[str, Any]:
    return {"processes": ({"pid": 5000 + number, "job": "slurm:7"},), **values}


def test_all_ranks_spin_in_a_collective() -> None:
    ranks = [rank(number, **SPINNING) for number in range(4)]
    found = diagnose(samples(*ranks, seconds=150, interval=1.0))
    assert {verdict.key for verdict in found} == {"hang"}
    assert {verdict.confidence for verdict in found} == {"high"}


def test_the_rank_that_does_nothing_is_named() -> None:
    stuck = rank(3, **SPINNING) | {"utilization": 0, "graphics_active": 0, "sm_active": 0}
    verdict = judged(*(rank(number, **SPINNING) for number in range(3)), stuck, seconds=60, interval=1.0)
    assert verdict.key == "hang"
    assert verdict.values["stuck"] == (3.0,)


def test_a_hang_without_counters_is_a_guess() -> None:
    blind = SPINNING | dict.fromkeys(COUNTERS) | {"memory_utilization": 0}
    verdict = judged(*(rank(number, **blind) for number in range(2)), seconds=60, interval=1.0)
    assert (verdict.key, verdict.confidence) == ("hang", "low")


def test_gpus_of_different_jobs_do_not_hang_together() -> None:
    alone = {"processes": ({"pid": 6000, "parent": 1, "command": "python other.py"},), **SPINNING}
    assert judged(alone, rank(1), seconds=60, interval=1.0).key != "hang"


def test_a_slow_clock_makes_a_straggler() -> None:
    slow = rank(2, clock_sm=1200)
    found = diagnose(samples(rank(0), rank(1), slow, rank(3)))
    assert keys(found[2])[0] == "straggler"
    assert found[2].values["kind"] == "clock"
    assert [found[at].key for at in (0, 1, 3)] == ["healthy"] * 3


def test_a_rank_without_data_makes_the_others_wait() -> None:
    starved = rank(1, utilization=40, graphics_active=40, sm_active=35, tensor_active=20, power_draw=300)
    found = diagnose(samples(rank(0), starved, rank(2)))
    assert found[1].key == "straggler"
    assert found[1].values["kind"] == "starved"


def test_a_judgement_leaves_nothing_for_the_garbage_collector() -> None:
    seen = samples(*(rank(number) for number in range(4)))
    diagnose(seen)  # loads the rules
    gc.collect()
    gc.disable()
    try:
        diagnose(seen)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_equal_ranks_have_no_straggler() -> None:
    assert {verdict.key for verdict in diagnose(samples(*(rank(number) for number in range(4))))} == {"healthy"}


def test_exchange_takes_the_time() -> None:
    busy = {"tensor_active": 14, "nvlink_rx": 150e9, "nvlink_tx": 150e9, "dram_active": 30, "power_draw": 350}
    assert {one.key for one in diagnose(samples(*(rank(number, **busy) for number in range(4))))} == {
        "communication_bound"
    }
    over_pcie = busy | {"nvlink_rx": 0, "nvlink_tx": 0, "pcie_rx": 22e9, "pcie_tx": 21e9}
    assert judged(*(rank(number, **over_pcie) for number in range(2))).key == "communication_bound"


def test_exchange_that_overlaps_with_computing_is_healthy() -> None:
    assert judged(*(rank(number, nvlink_rx=160e9, nvlink_tx=160e9) for number in range(4))).key == "healthy"
