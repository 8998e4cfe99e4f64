"""What a program itself used of a GPU, beside others."""

from __future__ import annotations

import pytest

from gpulse.analysis.own_use import EnergyShare, OtherProcess, OwnTally, OwnUse, energy_share, own_verdicts
from gpulse.analysis.tally import Tally
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Budget, Diagnosis, Holder, Verdict

OWN, OTHER, THIRD = 10, 20, 30
GIB = float(1 << 30)


def process(pid: int, memory: float | None = None, sm: float | None = None) -> Process:
    values = {"pid": pid, "memory_used": memory, "sm_utilization": sm}
    return Process({key: value for key, value in values.items() if value is not None})


def gpu(*processes: Process, skipped: bool = False, **values: float) -> Gpu:
    return Gpu(
        {"uuid": "GPU-0", "index": 0, **values}, {"processes": "skipped"} if skipped else {}, processes=processes
    )


@pytest.mark.parametrize(
    ("processes", "share", "estimated"),
    [
        ((), 0.0, False),
        ((process(OTHER, sm=50),), 0.0, False),
        ((process(OWN),), 1.0, False),
        ((process(OWN, sm=20), process(OTHER, sm=60)), 0.25, True),
        ((process(OWN, sm=20), process(OWN + 1, sm=20), process(OTHER, sm=60)), 0.4, True),
        ((process(OWN, sm=0), process(OTHER, sm=60)), 0.0, True),
        ((process(OWN, sm=20), process(OTHER, sm=0)), 1.0, False),
        ((process(OWN, sm=0), process(OTHER, sm=0)), 0.5, True),
        ((process(OWN, sm=20), process(OTHER)), None, False),
    ],
)
def test_energy_is_shared_by_the_time_that_kernels_ran(
    processes: tuple[Process, ...], share: float | None, estimated: bool
) -> None:
    found = energy_share(gpu(*processes), {OWN, OWN + 1})
    assert (found.value, found.estimated) == (share, estimated)


def test_peak_memory_is_that_of_all_own_processes_within_the_window() -> None:
    tally = OwnTally()
    for held, within in ((1.0, True), (3.0, True), (9.0, False)):
        tally.add(gpu(process(OWN, held), process(OWN + 1, 2.0), process(OTHER, 50.0)), {OWN, OWN + 1}, 1.0, within)
    use = tally.use(counted=False, telling=True)
    assert (use.used, use.memory_peak, sorted(use.pids)) == (True, 5.0, [OWN, OWN + 1])
    assert [(other.pid, other.memory) for other in use.others] == [(OTHER, 50.0)]


def test_a_list_that_was_skipped_tells_nothing() -> None:
    tally = OwnTally()
    tally.add(gpu(skipped=True, power_draw=100.0), {OWN}, 1.0, True)
    assert tally.use(counted=False, telling=True).used is None
    tally.add(gpu(process(OWN, 4.0), power_draw=100.0), {OWN}, 1.0, True)
    tally.add(gpu(skipped=True, power_draw=100.0), {OWN}, 1.0, True)
    use = tally.use(counted=False, telling=True)
    assert (use.used, use.memory_peak, use.energy, use.energy_estimated) == (True, 4.0, 300.0, True)


@pytest.mark.parametrize(
    ("seen", "used"),
    [
        (gpu(), False),
        (gpu(memory_used=400 * 2.0**20), None),  # somebody holds it whom the driver does not show
        (gpu(process(OTHER), memory_used=4 * GIB), False),
        (Gpu({"uuid": "GPU-0"}, {"processes": "denied"}), None),
        (Gpu({"uuid": "GPU-0"}, state="lost"), None),
    ],
)
def test_whether_a_gpu_was_used_is_only_said_if_it_can_be_seen(seen: Gpu, used: bool | None) -> None:
    tally = OwnTally()
    tally.add(seen, {OWN}, 1.0, True)
    assert tally.use(counted=True, telling=True).used is used
    hidden = OwnTally()
    hidden.add(gpu(process(OWN)), None, 1.0, True)
    assert hidden.use(counted=True, telling=True).used is None


def test_others_that_hold_memory_without_computing_leave_the_program_alone() -> None:
    for sm, alone in ((0, True), (1, False), (None, False)):
        tally = OwnTally()
        tally.add(gpu(process(OWN, 1.0, 50), process(OTHER, 1.0, sm)), {OWN}, 1.0, True)
        assert tally.use(counted=True, telling=True).alone is alone


def test_the_summary_of_a_gpu_has_the_energy_of_the_program() -> None:
    tally = Tally()
    shared = gpu(process(OWN, GIB, 20), process(OTHER, 9 * GIB, 60), memory_used=10 * GIB, energy=1.0)
    tally.add(Snapshot(1.0, (shared,), Host({})), None, 2.0, own={OWN})
    tally.add_shares(Snapshot(1.0, (shared,), Host({})), {OWN}, 2.0)
    tally.add_energy("GPU-0", 400.0, EnergyShare(0.25, True))
    [found] = tally.summary("", 2.0).gpus
    assert (found.energy, found.device_energy, found.energy_estimated) == (100.0, 400.0, True)
    assert (found.peak_memory, found.own.sm_utilization) == (GIB, 20.0)
    assert found.to_plain()["own"]["others"] == [
        {"pid": OTHER, "user": None, "name": None, "memory": 9 * GIB, "sm_utilization": 60.0}
    ]


@pytest.mark.parametrize("skipped", [False, True])
def test_energy_is_that_of_the_time_in_which_the_program_held_the_gpu(skipped: bool) -> None:
    """The counter is read every few seconds; a program that has begun or ended since then had only a part of the time."""
    tally = OwnTally()
    for at in range(10):
        held = [process(1, 1.0)] if 5 <= at < 9 else []
        unread = skipped and at in (6, 8)  # lists that were not read leave the share as it was
        tally.add(gpu(*held, skipped=unread, power_draw=300.0 if held else 100.0), {1}, 1.0, True)
    tally.charge(1800.0, EnergyShare(0.0, False))
    use = tally.use(True, True)
    assert use.energy == pytest.approx(1200.0)
    assert not use.energy_estimated
    tally.add(gpu(power_draw=100.0), {1}, 1.0, True)
    tally.charge(100.0, EnergyShare(0.0, False))
    assert tally.use(True, True).energy == pytest.approx(1200.0)


def verdict(key: str, *pids: int, also: tuple[Verdict, ...] = ()) -> Verdict:
    return Verdict(key, uuid="GPU-0", processes=[Holder(pid) for pid in pids], also=also)


def test_verdicts_about_others_are_left_out() -> None:
    def kept(one: Verdict, used: bool | None) -> list[tuple[str, list[str]]]:
        uses: dict[str | None, OwnUse] = {"GPU-0": OwnUse(used, pids=[OWN] if used else [])}
        return [(found.key, [other.key for other in found.also]) for found in own_verdicts(Diagnosis([one]), uses)]

    leak = verdict("memory_leak", OTHER, also=(verdict("power_cap"), verdict("contention", OWN, OTHER)))
    assert kept(leak, True) == [("power_cap", ["contention"])]
    assert kept(verdict("memory_leak", OTHER), True) == []
    assert kept(verdict("memory_leak", OWN), True) == [("memory_leak", [])]
    assert kept(verdict("power_cap"), False) == []
    assert kept(leak, None) == [("memory_leak", ["power_cap", "contention"])]


def test_where_the_time_went_is_told_only_of_a_gpu_that_nobody_else_used() -> None:
    spent = Budget(10, {"tensor": 0.5, "idle": 0.5})
    one = verdict("memory_leak", OTHER, also=(verdict("power_cap"),)).replace(budget=spent)
    alone, beside = (
        OwnUse(True, pids=[OWN]),
        OwnUse(True, pids=[OWN], others=[OtherProcess(OTHER, None, None, None, 60.0)]),
    )
    assert [found.budget for found in own_verdicts(Diagnosis([one]), {"GPU-0": alone})] == [spent]
    assert [found.budget for found in own_verdicts(Diagnosis([one]), {"GPU-0": beside})] == [None]
