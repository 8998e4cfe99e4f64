"""One identity: a PID that is given to another process, a card that is swapped, and a GPU that tells its UUID late."""

from __future__ import annotations

from typing import Any

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.analysis.diagnosis.judge import diagnose
from gpulse.analysis.diagnosis.window import windows_of
from gpulse.analysis.own_use import OwnTally
from gpulse.analysis.tally import Tally
from gpulse.model.catalog import Gpu, Process
from gpulse.model.event import Event
from gpulse.model.identity import GpuIdentities, rename
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.charts import run_charts, run_strips
from gpulse.surfaces.report.recorded_samples import RecordedSample
from tests.unit.analysis.alerts.machines import GIB, START, book, gpu, process, turns, watch

OLD, NEW = "GPU-old", "GPU-new"


def reused(second: float) -> Process:
    """Return a process whose PID belongs to another one from second 30 on."""
    user, age = ("ada", 4000 + second) if second < 30 else ("bob", second - 30)
    return process(7, 10 * GIB if user == "ada" else 2 * GIB, user=user, running_time=age)


def machine(second: float) -> Gpu:
    return gpu(processes=(reused(second),), utilization=50, memory_used=12 * GIB)


def test_a_window_has_two_processes_where_a_pid_was_reused() -> None:
    samples = [Snapshot(START + at, (machine(at),)) for at in range(60)]
    (window,) = windows_of(samples).windows()
    assert [(track.pid, track.process.user) for track in window.tracks.values()] == [(7, "ada"), (7, "bob")]
    assert diagnose(samples)[0].key != "contention"


def test_another_process_with_the_same_pid_is_another_one_beside_a_run() -> None:
    tally = OwnTally()
    for at in range(60):
        tally.add(machine(at), {1}, 1.0, True)
    others = tally.use(False, True).others
    assert [(one.pid, one.user, one.memory) for one in others] == [(7, "ada", 10 * GIB), (7, "bob", 2 * GIB)]


def test_a_report_lists_both_processes() -> None:
    run = account([RecordedSample(Snapshot(START + at, (machine(at),))) for at in range(60)], "run")
    assert {(use.process.user, use.peak) for use in run.uses} == {("ada", 10 * GIB), ("bob", 2 * GIB)}


def test_an_alert_about_a_process_ends_if_its_pid_is_another_process_after_a_restart() -> None:
    held = 10 * GIB
    before, after = (
        book("idle_allocation", idle_allocation={"for": 10}),
        book("idle_allocation", idle_allocation={"for": 10}),
    )
    at_rest: dict[str, Any] = {"utilization": 0, "memory_used": held}
    found = watch(before, lambda now: gpu(processes=(process(7, held, running_time=4000 + now),), **at_rest), 20)
    assert [turn[:2] for turn in turns(found)] == [("idle_allocation", "fire")]
    after.resume(before.active)
    found = watch(
        after, lambda now: gpu(processes=(process(7, held, running_time=now - 100),), **at_rest), 3, start=100
    )
    assert [turn[:2] for turn in turns(found)] == [("idle_allocation", "clear")]
    same = book("idle_allocation", idle_allocation={"for": 10})
    same.resume(before.active)
    assert (
        watch(same, lambda now: gpu(processes=(process(7, held, running_time=4000 + now),), **at_rest), 3, start=100)
        == []
    )


def test_events_of_a_card_that_was_swapped_out_are_not_those_of_the_new_one() -> None:
    event = Event(START + 5, "xid", ("0",), uuids=(OLD,), value=79.0)
    assert event.is_about(OLD, "0")
    assert not event.is_about(NEW, "0")
    assert Event(START, "xid", ("0",), value=79.0).is_about(NEW, "0")
    samples = [
        RecordedSample(
            Snapshot(START + at, (gpu(uuid=OLD if at < 10 else NEW, utilization=90),)), events=[event] * (at == 5)
        )
        for at in range(20)
    ]
    run = account(samples, "run")
    strips = {strip.name: strip.spans for strip in run_strips(run, run_charts(run))}
    assert {name: bool(spans) for name, spans in strips.items()} == {"GPU 0": True, "GPU 0 (1)": False}


def test_an_alert_about_a_card_that_was_replaced_is_over() -> None:
    known = GpuIdentities()
    known.keys([gpu(uuid=OLD, pci_bus_id="0000:41:00.0")])
    rules, after = RuleSet(rules_from({"enable": ["lost"]})), RuleSet(rules_from({"enable": ["lost"]}))
    watch(rules, lambda _: gpu(uuid=OLD, pci_bus_id="0000:41:00.0", state="lost"), 3)
    assert len(rules.active) == 1
    after.resume(rules.active, known.to_plain())
    found = watch(after, lambda _: gpu(uuid=NEW, pci_bus_id="0000:41:00.0"), 3, start=100)
    assert [(one.state, one.uuid) for one in found] == [("clear", OLD)]
    assert after.active == ()


def test_a_gpu_that_is_gone_without_another_in_its_slot_is_still_told() -> None:
    known = GpuIdentities()
    known.keys([gpu(0, pci_bus_id="a"), gpu(1, pci_bus_id="b")])
    rules, after = RuleSet(rules_from({"enable": ["lost"]})), RuleSet(rules_from({"enable": ["lost"]}))
    watch(rules, lambda _: (gpu(0, "lost", pci_bus_id="a"), gpu(1, pci_bus_id="b")), 3)
    after.resume(rules.active, known.to_plain())
    shifted = gpu(0, uuid="GPU-1", pci_bus_id="b")  # the driver counts anew
    assert watch(after, lambda _: shifted, 30, start=100) == []
    assert len(after.active) == 1


def test_a_gpu_without_uuid_is_not_taken_for_one_that_is_elsewhere() -> None:
    known = GpuIdentities()
    known.keys([gpu(0, pci_bus_id="a"), gpu(1, pci_bus_id="b")])
    lost = Gpu({"index": 0}, state="lost")
    assert known.keys([lost, gpu(1, uuid="GPU-0", pci_bus_id="a")]) == ["at 0", "GPU-0"]
    assert known.keys([lost, gpu(1, pci_bus_id="b")]) == ["GPU-0", "GPU-1"]


def test_a_run_has_one_gpu_that_tells_its_uuid_late() -> None:
    tally, late = Tally(), gpu(1, uuid=None, state="lost")
    for at in range(10):
        tally.add(Snapshot(START + at, (gpu(0), late if at < 5 else gpu(1, utilization=10), gpu(2))), None, 1.0)
    assert [one.uuid for one in tally.summary("", 10.0).gpus] == ["GPU-0", "GPU-1", "GPU-2"]


def test_what_is_known_by_uuid_stays() -> None:
    entries: dict[Any, int] = {"at 0": 1, ("at 1", "x"): 2, "GPU-1": 3, "GPU-0": 4}
    rename(entries, {"at 0": "GPU-0", "at 1": "GPU-1"})
    assert entries == {"GPU-0": 4, ("GPU-1", "x"): 2, "GPU-1": 3}
