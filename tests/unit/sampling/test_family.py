"""Which processes on a GPU belong to a program."""

from __future__ import annotations

import os

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.sampling.assemble import ProcessFamily
from gpulse.sources.processes import LinuxMachine


class Parents(LinuxMachine):
    """A machine that knows only who started whom."""

    def __init__(self, parents: dict[int, int]) -> None:
        super().__init__()
        self.parents = parents

    def parent(self, pid: int) -> int | None:
        return self.parents.get(pid)


def on_gpu(*pids: int, problems: tuple[Problem, ...] = ()) -> Snapshot:
    return Snapshot(
        1.0, (Gpu({"uuid": "GPU-0"}, processes=tuple(Process({"pid": pid}) for pid in pids)),), problems=problems
    )


def test_descendants_belong_to_it_and_siblings_do_not() -> None:
    family = ProcessFamily(10, Parents({10: 5, 11: 10, 12: 11, 20: 5, 30: 1}))
    assert family.members(on_gpu(10, 11, 12, 20, 30, 40)) == frozenset({10, 11, 12})


def test_a_worker_whose_parent_has_ended_stays() -> None:
    machine = Parents({11: 10, 12: 11})
    family = ProcessFamily(10, machine)
    assert family.members(on_gpu(12)) == frozenset({12})
    machine.parents = {12: 1}
    assert family.members(on_gpu(12, 13)) == frozenset({12})


def test_a_list_that_was_skipped_changes_nothing() -> None:
    family = ProcessFamily(10, Parents({11: 10}))
    assert family.members(on_gpu(11)) == frozenset({11})
    assert family.members(on_gpu()) == frozenset({11})


def test_in_another_namespace_nobody_can_tell() -> None:
    hidden = on_gpu(os.getpid(), problems=(Problem("processes", "hidden"),))
    assert ProcessFamily(os.getpid()).members(hidden) is None


def test_a_cycle_of_parents_ends() -> None:
    assert ProcessFamily(10, Parents({11: 12, 12: 11})).members(on_gpu(11)) == frozenset()
