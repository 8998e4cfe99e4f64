"""The processes that use most CPU and memory, and whether they use a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from gpulse.model.select import EVERYTHING
from gpulse.sources import host
from gpulse.sources.base import Facts
from gpulse.sources.host import TOP_KEYS, TopProcesses
from gpulse.sources.processes import LinuxMachine, Stat


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("gpulse.sources.host.time.monotonic", lambda: now[0])
    return now


def _stat(parent: int, cpu: int, resident: int = 1, started: int = 5) -> Stat:
    return Stat("python", "S", parent, cpu, 0, started, resident)


def _lists(top: TopProcesses) -> dict[str, Any]:
    facts = Facts()
    top.add_to(facts, lambda pid: ("ada", f"command {pid}"))
    return {**facts.values, **facts.gaps}


def test_the_first_walk_only_counts(clock: list[float]) -> None:
    top = TopProcesses(100, 4096)
    top.count({1: _stat(0, 10)}, ())
    assert _lists(top) == dict.fromkeys(TOP_KEYS, "pending")


def test_cpu_memory_and_role(clock: list[float]) -> None:
    top = TopProcesses(100, 4096)
    before = {1: _stat(0, 0), 7: _stat(1, 0), 8: _stat(7, 0), 9: _stat(8, 0), 20: _stat(1, 0, 1000)}
    top.count(before, {7})
    clock[0] += 2.0
    assert top.is_due()
    after = {1: _stat(0, 2), 7: _stat(1, 200), 8: _stat(7, 100), 9: _stat(8, 50), 20: _stat(1, 0, 1000)}
    top.count(after, {7})
    values = _lists(top)
    assert values["top_pids"] == (7.0, 8.0, 9.0, 1.0, 20.0)
    assert values["top_cpu"] == (100.0, 50.0, 25.0, 1.0, 0.0)
    assert values["top_roles"] == ("gpu", "worker", "worker", "other", "other")
    assert values["top_memory"][-1] == 1000 * 4096
    assert values["top_users"][0] == "ada"
    assert not top.is_due()


def test_a_reused_pid_does_not_inherit_cpu_time_and_a_circle_of_parents_ends(clock: list[float]) -> None:
    top = TopProcesses(100, 4096)
    top.count({1: _stat(2, 0), 2: _stat(1, 0), 3: _stat(1, 0, started=5)}, ())
    clock[0] += 2.0
    top.count({1: _stat(2, 0), 2: _stat(1, 0), 3: _stat(1, 900, started=77)}, {99})
    values = _lists(top)
    assert values["top_cpu"] == (0.0, 0.0, 0.0)
    assert set(values["top_roles"]) == {"other"}


def test_many_workers_do_not_push_out_the_others(clock: list[float]) -> None:
    top = TopProcesses(100, 4096)
    ids = range(100, 150)
    top.count({7: _stat(1, 0), 20: _stat(1, 0), **{pid: _stat(7, 0) for pid in ids}}, {7})
    clock[0] += 2.0
    top.count({7: _stat(1, 0), 20: _stat(1, 30), **{pid: _stat(7, 100) for pid in ids}}, {7})
    assert 20.0 in _lists(top)["top_pids"]


def test_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_EVERY", 0.0)
    machine = LinuxMachine()
    child = subprocess.Popen(
        [sys.executable, "-c", "import os\nprint(1, flush=True)\nwhile True: os.getpid()"], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        machine.processes([os.getpid()], frozenset({"pid"}))
        machine.host(TOP_KEYS)
        values: dict[str, Any] = {}
        for _ in range(200):
            values = {**machine.host(TOP_KEYS).values}
            roles = dict(zip(values["top_pids"], values["top_roles"], strict=True))
            if float(child.pid) in roles:
                break
        assert roles[float(child.pid)] == "worker"
        at = values["top_pids"].index(float(child.pid))
        assert sys.executable in values["top_commands"][at]
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def test_they_are_never_read_unless_asked_for() -> None:
    assert not TOP_KEYS & (EVERYTHING.host or frozenset())
    assert not TOP_KEYS & set(LinuxMachine().host(frozenset({"load"})).values)
