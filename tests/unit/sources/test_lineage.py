"""The ancestors of a process, from /proc."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpulse.sources.processes import LinuxMachine, Stat


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", "--token=hf_abcdefghijklmnopqrstuvwxyz"]
    )
    yield process
    process.kill()
    process.wait()


def test_from_a_process_up_to_but_without_init(child: subprocess.Popen[bytes]) -> None:
    found = LinuxMachine().lineage([child.pid])
    assert found[child.pid].parent == os.getpid()
    assert found[os.getpid()].parent == os.getppid()
    assert 1 not in found
    assert "time.sleep(600)" in found[child.pid].command
    assert "hf_abcdefghijklmnopqrstuvwxyz" not in found[child.pid].command
    assert found[child.pid].user == found[os.getpid()].user


def test_an_ended_process_is_left_out(child: subprocess.Popen[bytes]) -> None:
    machine = LinuxMachine()
    assert child.pid in machine.lineage([child.pid])
    child.kill()
    child.wait()
    assert machine.lineage([child.pid]) == {}


class _Processes(LinuxMachine):
    """Processes by PID: parent and start time."""

    def __init__(self, **processes: tuple[int, int]) -> None:
        super().__init__()
        self.table = {int(name[1:]): found for name, found in processes.items()}
        self.described: list[int] = []

    def _stat(self, pid: int | str) -> Stat | None:
        found = self.table.get(int(pid))
        return None if found is None else Stat(f"p{pid}", "S", found[0], 0, 0, found[1], 0)

    def _describe(self, pid: int, stat: Stat, owner_too: bool = False) -> dict[str, str]:
        self.described.append(pid)
        return {"name": stat.name, "user": "ada"}


def test_names_are_read_once_and_parents_every_time() -> None:
    machine = _Processes(p10=(1, 5), p11=(10, 6), p12=(10, 7))
    assert {pid: one.parent for pid, one in machine.lineage([11, 12]).items()} == {10: 1, 11: 10, 12: 10}
    machine.lineage([11, 12])
    assert machine.described == [11, 10, 12]
    machine.table[11] = (1, 6)  # its launcher has ended
    assert machine.lineage([11])[11].parent == 1
    machine.table[11] = (1, 900)  # another process with this PID
    machine.lineage([11])
    assert machine.described.count(11) == 3


def test_a_loop_ends() -> None:
    machine = _Processes(p10=(11, 5), p11=(10, 6))
    assert set(machine.lineage([10])) == {10, 11}
