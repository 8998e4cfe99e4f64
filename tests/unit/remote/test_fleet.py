"""The state and age of each machine."""

from __future__ import annotations

import time

import pytest

from gpulse.model.catalog import Gpu, Host
from gpulse.model.codec import to_line
from gpulse.model.snapshot import Snapshot
from gpulse.remote import ssh
from gpulse.remote.fleet import DemoFeed, Fleet
from gpulse.remote.ssh import SshFeed

_SAMPLE = Snapshot(1e9, (Gpu({"index": 0, "uuid": "GPU-1"}),), Host({"name": "box"}))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_machine_goes_from_connecting_to_ok_to_stale() -> None:
    clock = Clock()
    fleet = Fleet([], 5.0, clock)
    fleet.expect("a", "ssh")
    assert (fleet.read().hosts[0].state, fleet.read().hosts[0].age) == ("connecting", None)
    fleet.put("a", _SAMPLE)
    clock.now += 14
    (host,) = fleet.read().hosts
    assert (host.state, host.age, len(host.gpus)) == ("ok", 14, 1)
    clock.now += 2
    (host,) = fleet.read().hosts
    assert (host.state, host.age, host.gpus, host.reason) == ("stale", 16, (), "no sample for 16 s")


def test_a_machine_that_failed_keeps_its_last_sample_until_it_is_too_old() -> None:
    clock = Clock()
    fleet = Fleet([], 5.0, clock)
    fleet.expect("a", "ssh")
    fleet.put("a", _SAMPLE)
    fleet.fail("a", "unreachable", "Connection refused")
    assert fleet.read().hosts[0].state == "ok"
    clock.now += 16
    (host,) = fleet.read().hosts
    assert (host.state, host.reason, host.gpus) == ("unreachable", "Connection refused", ())
    fleet.put("a", _SAMPLE)
    assert (fleet.read().hosts[0].state, fleet.read().hosts[0].reason) == ("ok", "")


def test_two_machines_with_one_name_are_told_apart() -> None:
    fleet = Fleet([])
    assert [fleet.expect("a", "ssh"), fleet.expect("a", "url")] == ["a", "a (2)"]


def test_a_dead_machine_has_its_state_and_no_gpus_in_json() -> None:
    fleet = Fleet([])
    fleet.expect("a", "ssh")
    fleet.fail("a", "denied", "Permission denied")
    plain = fleet.read().to_plain()
    assert plain["schema"] == 1
    assert plain["hosts"] == [
        {"name": "a", "source": "ssh", "state": "denied", "age": None, "reason": "Permission denied", "gpus": []}
    ]


def test_a_sample_that_prometheus_scraped_long_ago_is_recent_while_it_is_handed_over() -> None:
    now = [100.0]
    fleet = Fleet([], 5.0, lambda: now[0])
    name = fleet.expect("box", "prometheus")
    fleet.put(name, Snapshot(0.0), age=55.0)
    (host,) = fleet.read().hosts
    assert (host.state, host.age) == ("ok", 55.0)
    now[0] += 16.0
    (host,) = fleet.read().hosts
    assert (host.state, host.age) == ("stale", 71.0)


def test_the_machines_of_the_demo_differ_in_their_load() -> None:
    until = time.monotonic() + 20.0
    with Fleet([DemoFeed(0.05)]) as fleet:
        while len(hosts := [host for host in fleet.read().hosts if host.gpus]) < 3 and time.monotonic() < until:
            time.sleep(0.02)
    free = {host.name: sum(1 for gpu in host.gpus if not gpu.processes) for host in hosts}
    assert free == {"gpu01": 2, "gpu02": 0, "gpu03": 6}


def test_many_connections_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Line(ssh._Line):
        def kill(self) -> None:
            done.append("killed")
            super().kill()

        def end(self) -> int:
            done.append("ended")
            return super().end()

    monkeypatch.setattr(ssh, "_Line", Line)
    feed = SshFeed([f"box{number}" for number in range(8)], 5.0, program=("sh", "-c", "exec sleep 60", "sh"))
    with Fleet([feed], 5.0):
        end = time.monotonic() + 20
        while len(feed._lines) < 8 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(feed._lines) == 8
    assert done == ["killed"] * 8 + ["ended"] * 8, "all of them before the first is waited for"


def test_a_machine_whose_files_cannot_be_kept_does_not_end_the_others() -> None:
    """The first prints a file and, below it, another one."""
    files = "gpulse-sysfs\nsys/class/drm/card0/device:1\nsys/class/drm/card0/device/vendor:1\ngpulse-sysfs-end"
    script = f"case $* in *good*) echo '{to_line(_SAMPLE)}' ;; *) echo '{files}' ;; esac; exec sleep 60"
    with Fleet([SshFeed(["bad", "good"], 5.0, program=("sh", "-c", script, "sh"))], 5.0) as fleet:
        fleet.wait(20.0)
        bad, good = fleet.read().hosts
    assert (good.state, bad.state) == ("ok", "unreachable")
    assert "cannot be read" in bad.reason
