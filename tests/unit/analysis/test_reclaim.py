"""Reclaim: nothing is done without evidence, and one thing after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from gpulse.analysis.reclaim import Holding, ReclaimPolicy, idle_holders, next_step
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.model.when import Hours
from tests.unit.analysis.alerts.machines import GIB, START, gpu, process

POLICY = ReclaimPolicy(idle=600, admin_after=300, grace=900, terminate=True, reports=True)
ONE = process(held=4 * GIB, cpu_percent=0.0)


def quiet(at: float) -> Gpu:
    return gpu(utilization=0, processes=[ONE])


def idle(
    make: Callable[[float], Gpu | None], now: float = 700.0, until: int = 700
) -> tuple[set[tuple[str, float]], str]:
    shown = [(at, make(at)) for at in range(0, until, 5)]
    samples = [Snapshot(START + at, (one,)) for at, one in shown if one is not None]
    return idle_holders(samples, POLICY, START + now)


def test_a_process_that_was_idle_all_the_time_is_found() -> None:
    assert idle(quiet) == ({("GPU-0", 42.0)}, "")


@pytest.mark.parametrize(
    "make",
    [
        lambda at: gpu(utilization=3 if at == 400 else 0, processes=[ONE]),  # worked once
        lambda at: gpu(utilization=None if at == 400 else 0, processes=[ONE]),  # nobody knows
        lambda at: gpu(utilization=0, processes=[ONE] if at > 200 else []),  # came later
        lambda at: gpu(utilization=0, processes=[process(held=4 * GIB, cpu_percent=90.0)]),
        lambda at: gpu(utilization=0, processes=[process(held=GIB // 2)]),
        lambda at: gpu(utilization=0, processes=[process(held=None)]),
        lambda at: gpu(state="lost" if at == 400 else "ok", utilization=None if at == 400 else 0, processes=[ONE]),
        lambda at: gpu(
            utilization=0, processes=[process(held=4 * GIB, running_time=1000 + at if at < 400 else at - 400)]
        ),  # another one
    ],
)
def test_whatever_else_is_not_idle(make: Callable[[float], Gpu]) -> None:
    assert idle(make)[0] == set()


def test_a_hole_in_the_records_begins_the_time_anew() -> None:
    found, doubt = idle(lambda at: None if 300 < at < 420 else quiet(at))
    assert (found, doubt) == (set(), "nothing was recorded for a while")
    assert idle(quiet, now=900.0) == (set(), "nothing is being recorded")
    assert idle_holders([], POLICY, START) == (set(), "nothing is being recorded")


def holding(cpu: float | None = 5.0, started: float | None = 77.0, **values: Any) -> Holding:
    return Holding("GPU-0", "0", process(**{"held": 4 * GIB, **values}), started, cpu)


def step(
    record: dict[str, float] | None,
    now: float,
    policy: ReclaimPolicy = POLICY,
    one: Holding | None = None,
    is_idle: bool = True,
) -> str:
    return next_step(one or holding(), is_idle, record, policy, now).action


def test_one_thing_after_the_other() -> None:
    assert step(None, 1000.0) == "warn"
    warned = {"warned": 1000.0, "cpu": 5.0}
    assert step(warned, 1299.0) == "wait"
    assert step(warned, 1300.0) == "report"
    assert step(warned, 9999.0) == "report"  # nobody is ended before the administrators know
    told = {**warned, "reported": 1300.0}
    assert step(told, 1899.0) == "wait"
    assert step(told, 1900.0) == "end"
    assert step(told, 1900.0, is_idle=False) == "spare"


def test_without_terminate_nothing_is_ever_ended() -> None:
    policy = ReclaimPolicy(idle=600, admin_after=300, grace=900, reports=True)
    assert step({"warned": 0.0, "cpu": 5.0, "reported": 1.0}, 1e6, policy) == "wait"


def test_a_process_that_has_worked_on_the_cpu_is_spared() -> None:
    told = {"warned": 1000.0, "cpu": 5.0, "reported": 1300.0}
    assert step(told, 2000.0, one=holding(cpu=5.0 + 299.0)) == "end"
    assert step(told, 2000.0, one=holding(cpu=5.0 + 301.0)) == "spare"
    assert step(told, 2000.0, one=holding(cpu=None)) == "unknown"
    assert step({"warned": 1000.0, "reported": 1300.0}, 2000.0) == "unknown"


@pytest.mark.parametrize(
    "exempt",
    [{"exempt_users": ["ada"]}, {"exempt_names": ["python"]}, {"exempt_names": ["train.py"]}, {"exempt_gpus": ["0"]}],
)
def test_exemptions(exempt: dict[str, Any]) -> None:
    one = holding(command="/usr/bin/python /home/ada/train.py")
    assert step(None, 1000.0, ReclaimPolicy(**exempt), one) == "spare"
    assert (
        step(None, 1000.0, ReclaimPolicy(exempt_users=["bob"], exempt_names=["pyth"], exempt_gpus=["1"]), one) == "warn"
    )


def test_a_process_that_cannot_be_identified_is_left_alone() -> None:
    assert step(None, 1000.0, one=holding(started=None)) == "unknown"
    assert step(None, 1000.0, one=holding(user=None)) == "spare"


def test_it_acts_in_its_hours_only() -> None:
    policy = ReclaimPolicy(hours=[Hours("Mon-Fri 09:00-18:00")])
    monday = time.mktime((2026, 11, 16, 10, 0, 0, 0, 0, -1))
    assert step(None, monday, policy) == "warn"
    assert step(None, monday + 10 * 3600, policy) == "wait"
