"""The newest values by tag, for programs that log by hand."""

from __future__ import annotations

import time

from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.ledger import Ledger
from gpulse.monitor.messages import AgentSample
from gpulse.monitor.monitor import Monitor
from gpulse.monitor.rhythm import Collector
from tests.unit.monitor.agent_samples import SetClock

GPU = Gpu({"uuid": "GPU-a", "index": 3, "utilization": 40.0, "memory_used": 5.0})


def ledger(*samples: AgentSample) -> Ledger:
    made = Ledger(lambda: None)
    for sample in samples:
        made.add(sample)
    return made


def taken(ago: float = 0.0) -> AgentSample:
    return AgentSample(time.monotonic() - ago, Snapshot(time.time(), (GPU,), Host({"cpu_percent": 7.0})), None)


def test_the_newest_values_by_tag() -> None:
    found = Collector(None).values(ledger(taken()), 1.0)
    assert found == {"gpu3/utilization": 40.0, "gpu3/memory_used": 5.0, "host/cpu_percent": 7.0}


def test_energy_counts_from_the_start_of_the_monitor() -> None:
    counted = [
        taken().replace(snapshot=Snapshot(1.0, (GPU.replace(energy=energy),), Host({})))
        for energy in (9e6, 9e6 + 250.0)
    ]
    assert Collector(["energy"]).values(ledger(*counted), 1.0) == {"gpu3/energy": 250.0}


def test_gpus_are_numbered_as_the_program_numbers_them() -> None:
    run = ledger(taken())
    run.ordinals = {"GPU-b": 0, "GPU-a": 1}
    assert Collector(["utilization"]).values(run, 1.0) == {"gpu1/utilization": 40.0, "host/cpu_percent": 7.0}


def test_nothing_before_the_first_sample_and_nothing_stale() -> None:
    assert Collector(None).values(ledger(), 1.0) == {}
    assert Collector(None).values(ledger(taken(ago=8.0)), 1.0) == {}
    assert Collector(None).values(ledger(taken(ago=8.0)), 2.0) != {}


def test_progress_is_that_since_the_previous_call() -> None:
    clock = SetClock(100.0)
    run, collector = Ledger(clock=clock), Collector(None)
    assert collector.values(run, 1.0) == {}
    run.step(10, 320.0)
    run.waited(0.5)
    clock.time = 102.0
    first = {"train/steps_per_second": 5.0, "train/items_per_second": 160.0, "train/data_wait": 25.0}
    assert collector.values(run, 1.0) == first
    assert collector.values(run, 1.0) == first  # too soon for another rate
    clock.time = 104.0
    run.step(2, 0.0)
    assert collector.values(run, 1.0) == {
        "train/steps_per_second": 1.0,
        "train/items_per_second": 0.0,
        "train/data_wait": 0.0,
    }


def test_the_caller_may_change_what_it_gets() -> None:
    run, collector = ledger(taken()), Collector(None)
    collector.values(run, 1.0).clear()
    assert collector.values(run, 1.0)


def test_a_monitor_that_was_not_started_has_nothing() -> None:
    assert Monitor().collect() == {}
