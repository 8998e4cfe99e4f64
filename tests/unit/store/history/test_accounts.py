"""Who used what, and what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import UsageError
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.present.events import event_text
from gpulse.store.history import HistoryReader, HistoryWriter
from tests.unit.store.history.ticks import START, TurnedClock, gpu, tick, write

GIB = 1 << 30


def process(pid: int, user: str, time: float = 0.0, **values: float | str) -> Process:
    return Process({"pid": pid, "user": user, "name": "python", "running_time": time + 100.0, **values})


def kinds(path: str) -> list[tuple[str, str]]:
    with HistoryReader(path) as reader:
        left = {"start", "stop", "boot"}
        found = reader.events(START - 1, START + 1e6)
        return [(event.kind, event_text(event)) for event in found if event.kind not in left]


def test_two_who_share_a_gpu_share_its_hours_and_its_energy_by_what_they_ran(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")

    def both(at: int) -> tuple[Process, ...]:
        return (
            process(1, "ada", at, memory_used=10 * GIB, sm_utilization=60, job="slurm:1"),
            process(2, "bob", at, memory_used=2 * GIB, sm_utilization=20),
        )

    write(path, (tick(at, gpu(processes=both(at), power_draw=400.0)) for at in range(7201)))
    with HistoryReader(path) as reader:
        ada, bob = sorted(reader.usage(START, START + 7201), key=lambda use: str(use.owner))
        jobs = {use.owner: use.gpu_hours for use in reader.usage(START, START + 7201, by="job")}
        half = sum(use.gpu_hours for use in reader.usage(START + 3600, START + 7201))
    assert (ada.owner, bob.owner) == ("ada", "bob")
    assert ada.gpu_hours == pytest.approx(1.0, abs=0.01)
    assert ada.gpu_hours + bob.gpu_hours == pytest.approx(2.0, abs=0.01)
    assert ada.busy_hours == pytest.approx(1.2, abs=0.01)
    assert ada.memory_hours == pytest.approx(20, abs=0.1)
    assert bob.memory_hours == pytest.approx(4, abs=0.1)
    assert ada.memory_most == 10 * GIB
    assert ada.energy == pytest.approx(400 * 7200 * 0.75, rel=0.01)
    assert bob.energy == pytest.approx(400 * 7200 * 0.25, rel=0.01)
    assert jobs == {"slurm:1": pytest.approx(1.0, abs=0.01), None: pytest.approx(1.0, abs=0.01)}
    assert half == pytest.approx(1.0, abs=0.01)


def test_what_nobody_knows_is_none(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(
        path,
        (tick(at, gpu(processes=(process(1, "ada", at), process(2, "ada", at)), power_draw=400)) for at in range(60)),
    )
    with HistoryReader(path) as reader:
        use, rest = reader.usage(START, START + 60)
        with pytest.raises(UsageError, match="shoe"):
            reader.usage(START, START + 60, by="shoe")
    assert (use.energy, use.memory_hours, use.memory_most, use.busy_hours) == (None, None, None, None)
    assert (use.processes, round(use.gpu_hours * 3600)) == (2, 59)
    assert (rest.owner, rest.processes, rest.gpu_hours) == ("unattributed", 0, 0.0)
    assert rest.energy == pytest.approx(400 * 59)


def test_time_that_nobody_watched_is_not_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    times = [*range(60), *range(5000, 5060)]
    write(path, (tick(at, gpu(processes=(process(1, "ada", at),))) for at in times))
    with HistoryReader(path) as reader:
        (use,) = reader.usage(START, START + 9000)
    assert use.gpu_hours * 3600 == pytest.approx(118, abs=0.1)


@pytest.mark.parametrize("interval", [0.1, 1, 5, 60, 600])
def test_hours_do_not_depend_on_the_interval(tmp_path: Path, interval: float) -> None:
    path = str(tmp_path / "h.db")
    times = [at * interval for at in range(301)]
    write(path, (tick(at, gpu(processes=(process(1, "ada", at),))) for at in times))
    with HistoryReader(path) as reader:
        (use,) = reader.usage(START, START + times[-1] + 1)
    assert use.gpu_hours * 3600 == pytest.approx(300 * interval, abs=1.01 * interval)


def test_busy_hours_follow_the_counter_and_not_a_value_that_is_repeated(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")

    def at_work(at: int) -> Process:  # busy from 10 to 17 s; the counter is read every 5 s, as the sampler does
        read = at // 5 * 5
        ran = max(0, min(read, 17) - 10)
        share = 100 * (ran - max(0, min(read - 5, 17) - 10)) / 5
        return process(1, "ada", at, sm_utilization=share, sm_time=float(ran))

    write(path, (tick(at, gpu(processes=(at_work(at),))) for at in range(61)))
    with HistoryReader(path) as reader:
        (use,) = reader.usage(START, START + 61)
    assert use.busy_hours is not None
    assert use.busy_hours * 3600 == pytest.approx(7.0)


def test_energy_is_the_counters_and_goes_to_who_ran_meanwhile(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")

    def both(at: int) -> Gpu:  # ada runs for 20 s, bob for 20 s, then both idle for 20 s
        read = at // 5 * 5
        ada = process(1, "ada", at, sm_time=float(min(read, 20)), sm_utilization=0)
        bob = process(2, "bob", at, sm_time=float(min(20, max(0, read - 20))), sm_utilization=0)
        joules = 500.0 * min(read, 40) + 100.0 * max(0, read - 40)
        return gpu(processes=(ada, bob), energy=joules, power_draw=1.0)

    write(path, (tick(at, both(at)) for at in range(61)))
    with HistoryReader(path) as reader:
        energies = {use.owner: use.energy for use in reader.usage(START, START + 61)}
    assert energies == pytest.approx({"ada": 10_000, "bob": 10_000, "unattributed": 2000})


def test_energy_without_a_process_is_unattributed_and_is_taken_up_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    for first in (0, 100):
        write(path, (tick(at, gpu(energy=100.0 * at)) for at in range(first, first + 61)))
    with HistoryReader(path) as reader:
        (use,) = reader.usage(START, START + 200)
        (by_gpu,) = reader.usage(START, START + 200, by="gpu")
        assert reader.processes(START, START + 200) == []
        assert all(not one.processes for snapshot in reader.snapshots(START, START + 200) for one in snapshot.gpus)
    assert (use.owner, by_gpu.owner) == ("unattributed", "GPU-a")
    assert use.energy == by_gpu.energy == pytest.approx(12_000)


def test_mig_instances_count_by_their_slices(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")

    def parted(at: int) -> Gpu:
        parts = tuple(
            Gpu({"uuid": f"MIG-{n}", "index": n, "name": name}, processes=(process(n + 1, user, at),))
            for n, (name, user) in enumerate(
                [("MIG 1g.10gb", "ada"), ("MIG 3g.40gb", "bob"), ("MIG 1c.3g.40gb", "bob")]
            )
        )
        return Gpu({"uuid": "GPU-a", "index": 0}, instances=parts)

    write(path, (tick(at, parted(at)) for at in range(3601)))
    with HistoryReader(path) as reader:
        hours = {use.owner: (use.gpu_hours, use.instance_hours) for use in reader.usage(START, START + 3601)}
    assert hours["ada"] == pytest.approx((1 / 7, 1.0), rel=0.001)
    assert hours["bob"] == pytest.approx((4 / 7, 2.0), rel=0.001)


def test_a_writer_that_starts_again_knows_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    for first in (0, 100):
        write(path, (tick(at, gpu(processes=(process(1, "ada", at),))) for at in range(first, first + 100)))
    write(path, [tick(200, gpu(processes=(process(1, "ada", -90),)))])
    with HistoryReader(path) as reader:
        old, new = reader.processes(START, START + 300)
    assert (old.pid, new.pid) == (1, 1)
    assert (old.first, old.last, round(old.seconds)) == (START, START + 199, 198)
    assert old.started == pytest.approx(START - 100)
    assert old.text == {"user": "ada", "name": "python"}


def test_processes_come_and_go_and_a_pid_is_used_again(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    young = Process({"pid": 1, "name": "fresh", "user": "bob", "running_time": 1.0})
    write(path, [
        tick(0, gpu()), tick(1, gpu(processes=(process(1, "ada"),))), tick(20, gpu(processes=(process(1, "ada", 19),))),
        tick(21, gpu(processes=(young,))), tick(22, Gpu({"uuid": "GPU-a", "index": 0}, {"processes": "denied"})), tick(23, gpu()),
    ])  # fmt: skip
    assert kinds(path) == [
        ("process-start", "ada's python (pid 1) started on GPU 0"),
        ("process-end", "ada's python (pid 1) ended on GPU 0 after 1m59s"),
        ("process-start", "bob's fresh (pid 1) started on GPU 0"),
        ("process-end", "bob's fresh (pid 1) ended on GPU 0 after 1s"),
    ]  # fmt: skip


def test_states_errors_and_throttling_are_told_once(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    hot = [gpu(throttle_reasons=("sw_thermal_slowdown",)), gpu(throttle_reasons=())]
    ticks = [tick(at, hot[at % 2]) for at in range(20)] + [
        tick(at, gpu(throttle_reasons=("gpu_idle",))) for at in range(20, 40)
    ]
    ticks += [
        tick(40, gpu(xid_last=79)),
        tick(41, Gpu({"uuid": "GPU-a", "index": 0}, state="lost")),
        tick(42, gpu(xid_last=79)),
    ]
    write(path, ticks)
    assert kinds(path) == [
        ("throttled", "GPU 0 throttled: too hot"),
        ("xid", "GPU 0 reported XID 79 (GPU has fallen off the bus): restart the machine; check power and slot if this comes back"),
        ("lost", "GPU 0 is lost (fell off the bus)"),
        ("back", "GPU 0 is responding again"),
    ]  # fmt: skip


def test_a_boot_is_told_once_and_not_by_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "h.db")
    write(path, [tick(0, gpu())])
    for at in (10, 20):
        monkeypatch.setattr("gpulse.store.history.writer._boot_id", lambda: "another")
        write(path, [tick(at, gpu())])
    with HistoryReader(path) as reader:
        kinds = [event.kind for event in reader.events(START, START + 30)]
    assert kinds == ["start", "stop", "boot", "start", "stop", "start", "stop"]


def test_a_clock_set_back_between_two_recordings_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    for at in (100, 40, 41):
        write(path, [tick(at, gpu())])
    assert kinds(path) == [("clock", "the system clock was set back by 1m00s")]


def test_names_that_are_no_text_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    odd = Process({"pid": 7, "name": "a\udcffb\x1b[31m", "user": "x"})
    clock = TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        writer.add(Snapshot(START, (gpu("GPU-\udcff", processes=(odd,), throttle_reasons=("hot\udcff",)),)))
        assert writer.problems == ()
    with HistoryReader(path) as reader:
        assert reader.processes(START, START + 1)[0].text["name"] == "a\\udcffb\x1b[31m"
