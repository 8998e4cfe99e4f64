"""Tests for the past of a fleet that is kept in memory: intervals, GPU hours and cost."""

from __future__ import annotations

import time

import pytest

from gpulse.analysis import fleet_usage
from gpulse.analysis.fleet import Funnel, unused_grants
from gpulse.analysis.fleet_usage import UNKNOWN, FleetRing, FleetUsage, owners_of
from gpulse.model.catalog import Gpu, Process
from gpulse.model.fleet import FleetSnapshot, HostReport
from gpulse.model.serving import Tariff
from gpulse.model.snapshot import Snapshot

NOON = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))


def gpu(index: int, busy: float | None, *holders: tuple[str, str], power: float | None = 100.0, **more: float) -> Gpu:
    values = {"index": index, "uuid": f"GPU-{index}", "utilization": busy, "power_draw": power, **more}
    processes = tuple(Process({"pid": at, "user": user, "job": job}) for at, (user, job) in enumerate(holders))
    return Gpu({key: value for key, value in values.items() if value is not None}, {}, processes=processes)


def host(name: str, *gpus: Gpu, source: str = "ssh") -> HostReport:
    return HostReport(name, source, "ok", Snapshot(NOON, gpus), 0.0)


def test_hours_are_counted_by_owner_machine_and_day() -> None:
    usage = FleetUsage()
    machines = [host("a", gpu(0, 50.0, ("ada", "slurm:1")), gpu(1, 0.0)), host("b", gpu(0, 100.0, ("bob", "")))]
    usage.add(NOON, 3600.0, machines)
    usage.add(NOON + 86_400, 1800.0, machines)
    assert [(row["name"], row["gpu_hours"], row["idle_share"]) for row in usage.rows("user")] == [
        ("ada", 1.5, 50.0),
        ("bob", 1.5, 0.0),
    ]
    assert [(row["name"], row["gpu_hours"], row["held_hours"], row["idle_share"]) for row in usage.rows("host")] == [
        ("a", 3.0, 1.5, 75.0),
        ("b", 1.5, 1.5, 0.0),
    ]
    assert [(row["name"], row["gpu_hours"]) for row in usage.rows("day")] == [("2026-11-15", 3.0), ("2026-11-16", 1.5)]
    assert usage.rows("job")[0]["energy"] == pytest.approx(100 * 5400)


def test_a_gpu_of_two_owners_is_shared_and_what_is_unknown_is_not_idle() -> None:
    usage = FleetUsage()
    usage.add(NOON, 3600.0, [host("a", gpu(0, None, ("ada", ""), ("bob", ""), power=None))])
    row = usage.rows("user", Tariff(gpu_price=2.0))[0]
    assert (row["gpu_hours"], row["idle_share"], row["energy"]) == (0.5, None, None)
    assert (row["cost"], row["idle_cost"]) == (1.0, None)


def test_cost_has_its_idle_part() -> None:
    usage = FleetUsage()
    usage.add(NOON, 7200.0, [host("a", gpu(0, 25.0, ("ada", "")))])
    row = usage.rows("user", Tariff(gpu_price=2.0))[0]
    assert (row["cost"], row["idle_cost"]) == (4.0, 3.0)


def test_two_accounts_are_added_up() -> None:
    one, other = FleetUsage(), FleetUsage()
    one.add(NOON, 3600.0, [host("a", gpu(0, 50.0, ("ada", "")))])
    other.add(NOON, 3600.0, [host("b", gpu(0, 50.0, ("ada", "")))])
    assert [row["gpu_hours"] for row in one.merged(other).rows("user")] == [2.0]
    assert [row["gpu_hours"] for row in one.rows("user")] == [1.0]


def test_of_too_many_records_the_oldest_days_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_usage, "_MOST", 4)
    usage = FleetUsage()
    for day in range(5):
        usage.add(NOON + 86_400 * day, 3600.0, [host("a", gpu(0, 50.0, ("ada", "")), gpu(1, 0.0))])
    assert len(usage.records) <= 4
    assert [row["name"] for row in usage.rows("day")][-1] == "2026-11-19"
    assert "2026-11-15" not in [row["name"] for row in usage.rows("day")]


def test_the_ring_has_means_and_gaps() -> None:
    ring = FleetRing(5.0)
    start = NOON - NOON % 15
    for at, busy in ((0, 10.0), (5, 20.0), (10, 30.0), (30, 80.0), (45, 90.0)):
        ring.add(start + at, [host("a", gpu(0, busy, memory_used=5.0)), host("b", gpu(0, None, power=None))])
    times, series = ring.history("a", start, start + 60)
    assert times == [start, start + 30]
    assert series["GPU-0", "utilization"] == [20.0, 80.0]
    assert ("GPU-0", "sm_active") not in series
    assert ring.history("b", start, start + 60)[1] == {}
    assert ring.since == start
    shares = ring.shares([start, start + 15, start + 30], 15.0)
    assert list(shares["a"]) == [20, UNKNOWN, 80]
    assert "b" not in shares


def test_sm_activity_is_the_share_where_it_is_measured() -> None:
    ring = FleetRing(5.0)
    start = NOON - NOON % 15
    ring.add(start, [host("a", gpu(0, 100.0, sm_active=4.0), gpu(1, 10.0))])
    ring.add(start + 15, [host("a", gpu(0, 100.0))])
    assert list(ring.shares([start], 15.0)["a"]) == [7]


def test_the_share_of_a_gpu_in_parts_is_what_its_instances_do() -> None:
    parts = tuple(Gpu({"uuid": f"MIG-{at}", "name": "MIG 3g.40gb", "sm_active": 70.0}) for at in range(2))
    divided = Gpu({"uuid": "GPU-0", "index": 0, "mig_mode": True}, instances=parts)
    assert fleet_usage.share_of(divided) == pytest.approx(60.0)
    assert Funnel([divided]).effective == pytest.approx(0.6)
    ring = FleetRing(5.0)
    start = NOON - NOON % 15
    ring.add(start, [host("a", divided)])
    ring.add(start + 15, [host("a", divided)])
    assert list(ring.shares([start], 15.0)["a"]) == [60]


def test_the_ring_is_bounded_and_takes_new_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_usage, "_ROOM", 4 * len(fleet_usage.KEYS) * 10)
    ring = FleetRing(5.0)
    start = NOON - NOON % 15
    for at in range(40):
        machines = [host("a", gpu(0, 1.0))] + ([host("b", gpu(0, 2.0))] if at > 20 else [])
        ring.add(start + 15 * at, machines)
    times, series = ring.history("b", start, start + 3600)
    assert 1 <= len(times) <= 10
    assert series["GPU-0", "utilization"] == [2.0] * len(times)


def test_gpus_that_are_given_to_somebody_and_not_used_are_named() -> None:
    machines = (host("gpu1.lab", gpu(0, 0.0), gpu(1, 90.0, ("ada", ""))), host("gpu2", gpu(0, 0.0)))
    ada = {"user": "ada", "job": "slurm:7"}
    snapshot = FleetSnapshot(NOON, machines, ({"gpu1": {0: ada, 1: ada, 5: ada}}, {"gpu3": {0: ada}}))
    assert [(one.name, card.index, who["job"]) for one, card, who in unused_grants(snapshot)] == [
        ("gpu1.lab", 0, "slurm:7")
    ]


def test_who_held_a_gpu_that_does_not_respond_is_not_known() -> None:
    usage = FleetUsage()
    usage.add(NOON, 3600.0, [host("a", gpu(0, 50.0, ("ada", "")), Gpu({"index": 1, "uuid": "GPU-1"}, state="lost"))])
    assert [(row["gpu_hours"], row["held_hours"]) for row in usage.rows("host")] == [(1.0, 1.0)]


def test_a_process_that_only_draws_holds_no_gpu_and_hidden_ones_do() -> None:
    screen = Gpu({"index": 0, "utilization": 3.0}, processes=(Process({"pid": 7, "user": "root", "type": "G"}),))
    hidden = Gpu({"index": 1, "utilization": 90.0, "memory_used": 8 << 30}, {"processes": "denied"})
    assert (Funnel([screen]).allocated, Funnel([hidden]).allocated) == (0, 1)
    assert (owners_of(screen), owners_of(hidden)) == ([], [("", "")])
