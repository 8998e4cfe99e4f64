"""One measurement, and measurements added up."""

from __future__ import annotations

import json
import os
import threading

import pytest

from gpulse.analysis.own_use import EnergyShare
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.measurement import CallTally, Measurement
from gpulse.monitor.measurements import Measurements

GIB = 1 << 30
OWN = frozenset({os.getpid()})


def snapshot(*used: tuple[float, float | None], utilization: float = 50.0) -> Snapshot:
    """Return a snapshot with so much memory used, and so much of it by this process, on each GPU."""
    return Snapshot(
        1.0,
        tuple(
            Gpu(
                {"uuid": f"GPU-{at}", "index": at, "memory_used": all_of_it, "utilization": utilization / (at + 1)},
                processes=()
                if own is None
                else (Process({"pid": 1, "memory_used": GIB}), Process({"pid": os.getpid(), "memory_used": own})),
            )
            for at, (all_of_it, own) in enumerate(used)
        ),
        Host({}),
    )


def made(
    before: Snapshot | None,
    *during: Snapshot,
    seconds: float = 2.0,
    energy: float | None = None,
    name: str = "load",
    complete: bool = True,
    own: frozenset[int] | None = None,
) -> Measurement:
    """Return a measurement of a call that saw these samples, of a program with these processes."""
    measurement, tally = Measurement(name), CallTally()
    if before is not None:
        tally.begin(before, own)
    for sample in during:
        tally.add(sample, None, seconds / len(during), own=own)
    if energy is not None:
        tally.add_energy("GPU-0", energy, None if own is None else EnergyShare(0.5, True))
    measurement.seconds = measurement.elapsed = seconds
    if complete:
        measurement.complete(tally if during else None)
    return measurement


def test_memory_before_during_and_after() -> None:
    call = made(snapshot((10, None)), snapshot((70, None)), snapshot((30, None)))
    assert (call.memory_peak, call.memory_net) == (70, 20)
    assert (call.device_memory_peak, call.device_memory_net) == (70, 20)  # nobody knows whose it is


def test_memory_may_fall_and_zero_is_a_change() -> None:
    assert made(snapshot((50, None)), snapshot((30, None))).memory_net == -20
    assert made(snapshot((50, None)), snapshot((50, None))).memory_net == 0


def test_of_several_gpus_only_those_this_process_uses_are_told() -> None:
    call = made(snapshot((5, None), (9, None)), snapshot((40, 30), (99, None)), own=OWN)
    assert [gpu.uuid for gpu in call.gpus] == ["GPU-0"]
    assert (call.device_memory_peak, call.device_memory_net) == (40, 35)
    assert (call.memory_peak, call.memory_net) == (30, 30)  # it held nothing there before


def test_a_call_that_used_no_gpu_is_credited_with_nothing() -> None:
    busy = Gpu(
        {"uuid": "GPU-0", "index": 0, "memory_used": 9.0 * GIB, "utilization": 97.0},
        processes=(
            Process({"pid": 1, "user": "ada", "name": "python", "memory_used": 9.0 * GIB, "sm_utilization": 90}),
        ),
    )
    call = made(None, Snapshot(1.0, (busy,), Host({})), own=frozenset())
    assert call.used_gpu is False
    assert (call.gpus, call.memory_peak, call.utilization, call.energy) == ((), None, None, None)
    assert str(call) == "load                        2.00 s  CPU    0 %  used no GPU"
    assert ("GPU", "not used") in call.facts()
    [there] = call.visible_gpus
    assert [other.user for other in there.own.others] == ["ada"]


def test_memory_of_a_list_that_was_skipped_is_unread() -> None:
    skipped = Gpu({"uuid": "GPU-0", "index": 0, "memory_used": 40.0}, {"processes": "skipped"})
    call = made(snapshot((10, 5)), snapshot((40, 30)), Snapshot(1.0, (skipped,), Host({})), own=OWN)
    assert (call.memory_peak, call.memory_net) == (30, 25)


def test_where_no_process_is_known_all_gpus_are_told() -> None:
    call = made(snapshot((1, None), (2, None)), snapshot((3, None), (5, None)))
    assert (len(call.gpus), call.memory_peak, call.memory_net) == (2, 8, 5)


def test_without_a_sample_before_there_is_no_change() -> None:
    call = made(None, snapshot((70, None)))
    assert (call.memory_peak, call.memory_net) == (70, None)


def test_activity_is_that_of_the_gpu_used_most() -> None:
    call = made(None, snapshot((1, None), (1, None), utilization=80.0))
    assert call.utilization is not None
    assert call.utilization.mean == 80.0
    assert call.sm_active is None


@pytest.mark.parametrize(("seconds", "seen", "energy"), [(0.05, False, None), (0.5, True, None), (1.0, True, 300.0)])
def test_a_short_call_says_nothing_about_gpus_and_a_middling_one_nothing_about_energy(
    seconds: float, seen: bool, energy: float | None
) -> None:
    call = made(None, snapshot((70, None)), seconds=seconds, energy=300.0)
    assert (call.memory_peak is not None, call.utilization is not None, call.energy) == (seen, seen, energy)


def test_a_call_that_nobody_watched_knows_its_time() -> None:
    call = made(None)
    assert (call.gpus, call.memory_peak, call.memory_net, call.device_memory_peak, call.energy) == (
        (),
        None,
        None,
        None,
        None,
    )
    assert "2.00 s" in str(call)


def test_reading_waits_for_the_last_sample() -> None:
    call = made(None, complete=False)
    tally = CallTally()
    tally.add(snapshot((70, None)), None, 2.0)
    found: list[float | None] = []
    thread = threading.Thread(target=lambda: found.append(call.memory_peak))
    thread.start()
    while not call._then:  # until it waits
        pass
    call.complete(tally)
    thread.join()
    assert found == [70]


def test_what_was_read_too_early_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    call = made(None, complete=False)
    assert not call.wait(0.0)
    monkeypatch.setattr(Measurement, "wait", lambda self: False)
    assert call.gpus == ()
    monkeypatch.undo()
    tally = CallTally()
    tally.add(snapshot((70, None)), None, 2.0)
    call.complete(tally)
    assert call.memory_peak == 70


def test_reading_it_while_it_lasts_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measurement, "wait", None)
    call = Measurement("open")
    assert (call.gpus, call.used_gpu, call.memory_peak, call.energy) == ((), None, None, None)
    assert str(call).startswith("open")


def test_then_is_called_once_now_or_later() -> None:
    call, said = made(None, complete=False), []
    call.then(lambda _: said.append("later"))
    assert said == []
    call.complete()
    call.complete()
    call.then(lambda _: said.append("now"))
    assert said == ["later", "now"]


def test_it_is_plain_data() -> None:
    plain = json.loads(json.dumps(made(snapshot((1, 1)), snapshot((3, 2)), energy=5.0, own=OWN).to_plain()))
    assert (plain["name"], plain["memory_peak"], plain["device_memory_net"], plain["energy"]) == ("load", 2, 2, None)


def test_a_line_for_people() -> None:
    alone = [
        Gpu(
            {"uuid": "GPU-0", "index": 0, "memory_used": size, "utilization": 50.0, "energy": 1.0},
            processes=(Process({"pid": os.getpid(), "memory_used": size}),),
        )
        for size in (GIB, 3 * GIB)
    ]
    call = made(*(Snapshot(1.0, (gpu,), Host({})) for gpu in alone), energy=642.8, own=OWN)
    call.cpu_seconds = 1.0
    assert str(call) == (
        "load                        2.00 s  CPU   50 %  GPU memory   3.0 GiB   +2.0 GiB"
        "  util  50 % (p95  50)  SM    –            643 J"
    )
    call.failed = True
    assert str(call).endswith("  failed")
    call.interrupted = True
    assert str(call).endswith("  interrupted")


def test_beside_others_the_line_is_about_this_program() -> None:
    def gpu(size: int) -> Gpu:
        mine = Process({"pid": os.getpid(), "memory_used": size, "sm_utilization": 25})
        other = Process({"pid": 1, "memory_used": 70 * GIB, "sm_utilization": 75})
        return Gpu(
            {"uuid": "GPU-0", "index": 0, "memory_used": size + 70 * GIB, "utilization": 97.0, "energy": 1.0},
            processes=(other, mine),
        )

    measurement, tally = Measurement("load"), CallTally()
    for size in (GIB, 3 * GIB):
        tally.add(taken := Snapshot(1.0, (gpu(size),), Host({})), None, 1.0, own=OWN)
    tally.add_shares(taken, OWN, 2.0)
    tally.add_energy("GPU-0", 400.0, EnergyShare(0.25, True))
    measurement.seconds = measurement.elapsed = 2.0
    measurement.complete(tally)
    assert str(measurement).endswith("GPU memory   3.0 GiB             SM share 25 %  100 J (its share, estimated)")
    assert (measurement.sm_utilization, measurement.energy, measurement.energy_estimated) == (25.0, 100.0, True)
    [there] = measurement.gpus
    assert (there.device_energy, there.peak_memory, there.own.alone) == (400.0, 3 * GIB, False)


def test_a_name_cannot_act_on_a_terminal() -> None:
    table = Measurements()
    call = made(None, name="\x1b[31mred\nline")
    table.add(call)
    assert "\x1b" not in str(call) + str(table)
    assert "\n" not in str(call)


def test_torch_says_at_most_what_it_knows() -> None:
    call = made(None)
    call.torch_net, call.torch_peak_limit = -2 * GIB, 5 * GIB
    assert "torch  ≤5.0 GiB   -2.0 GiB" in str(call)
    call.torch_peak = 5 * GIB
    assert "torch   5.0 GiB   -2.0 GiB" in str(call)


def test_memory_that_was_not_known_before_is_not_taken_for_none() -> None:
    hidden = snapshot((5 * GIB, None))  # memory in use, and nobody listed
    call = made(hidden, snapshot((5 * GIB, 4 * GIB)), own=OWN)
    call.torch_held_net = GIB
    assert (call.memory_peak, call.memory_net, call.device_memory_net) == (4 * GIB, None, 0)
    known = made(snapshot((4 * GIB, 3 * GIB)), snapshot((6 * GIB, 5 * GIB)), own=OWN)
    known.torch_held_net = GIB  # the sample after the end is late: torch's own figure is that of the end
    assert (known.memory_peak, known.memory_net) == (5 * GIB, GIB)


# --- added up


def test_calls_of_one_name_add_up() -> None:
    table = Measurements()
    for seconds, peak in ((2.0, 70), (4.0, 30)):
        call = made(None, snapshot((peak, None)), seconds=seconds, energy=100.0 * seconds)
        table.add(call)
        call.then(table.complete)
    total = table["load"]
    assert (total.calls, total.seconds, total.mean, total.max, total.memory_peak) == (2, 6.0, 3.0, 4.0, 70)
    assert (total.utilization, total.energy, total.failed) == (50.0, 600.0, 0)
    assert (total.percentile(50), total.percentile(95)) == (2.0, 4.0)
    assert total.to_plain()["p95"] == 4.0


def test_short_calls_are_charged_by_the_power_around_them_once_they_are_a_second() -> None:
    table = Measurements()
    for _ in range(5):
        table.add(made(None, seconds=0.1))
    table.charge(200.0)
    assert table["load"].energy is None  # half a second
    for _ in range(5):
        table.add(made(None, seconds=0.125))
    assert table["load"].energy is None
    table.charge(100.0)
    assert table["load"].energy == pytest.approx(0.5 * 200 + 0.625 * 100)
    table.charge(100.0)
    assert table["load"].energy == pytest.approx(162.5)


def test_names_stand_in_the_order_first_met_and_can_be_cleared() -> None:
    table = Measurements()
    for name in ("b", "a", "b"):
        table.add(made(None, name=name))
    assert [total.name for total in table] == ["b", "a"]
    assert ("a" in table, "c" in table, len(table)) == (True, False, 2)
    late = made(None, name="b", complete=False)
    table.clear()
    late.then(table.complete)
    late.complete()  # of a name that is forgotten
    assert (len(table), str(table).count("\n")) == (0, 0)


def test_the_table_is_a_table() -> None:
    table = Measurements()
    for name, seconds in (("load", 2.0), ("a longer name", 0.01)):
        table.add(made(None, name=name, seconds=seconds))
    lines = str(table).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert " ".join(lines[0].split()) == "name calls total mean p50 p95 max GPU mem util SM energy per call"
    assert lines[2].split()[:5] == ["a", "longer", "name", "1", "10.0"]


def test_threads_may_add_at_once() -> None:
    table = Measurements()

    def work() -> None:
        for _ in range(500):
            table.add(made(None, seconds=0.5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (table["load"].calls, table["load"].seconds) == (2000, 1000.0)


def test_without_a_counter_energy_is_estimated_from_power_and_says_so() -> None:
    powered = Snapshot(1.0, (Gpu({"uuid": "GPU-0", "index": 0, "power_draw": 300.0}),), Host({}))
    call = made(powered, powered, powered)
    assert call.energy == pytest.approx(600.0)
    assert call.energy_estimated
    assert str(call).endswith("600 J (estimated)")
    counted = Snapshot(1.0, (Gpu({"uuid": "GPU-0", "index": 0, "power_draw": 300.0, "energy": 5.0}),), Host({}))
    call = made(counted, counted, energy=500.0)
    assert (call.energy, call.energy_estimated) == (500.0, False)
    assert made(powered, powered, seconds=0.5).energy_estimated is False


def test_a_name_for_every_call_is_one_total_in_the_end() -> None:
    table = Measurements()
    for at in range(1500):
        call = made(None, snapshot((70, None)), name=f"request {at}")
        table.add(call)
        table.complete(call)
    assert len(table) == 1001
    assert (table["(others)"].calls, table["(others)"].memory_peak) == (500, 70)
