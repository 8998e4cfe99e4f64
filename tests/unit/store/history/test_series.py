"""What is written is read: at full resolution, rolled up, across gaps, new metrics, new GPUs and clocks that leap."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.surfaces.history.tables import over_time
from tests.unit.store.history.ticks import START, TurnedClock, gpu, known, series, tick, write

HOUR = 3600


def test_open_and_sealed_ticks_are_one_series(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(utilization=at % 101)) for at in range(1500)))
    found = series(path, "utilization", 0, 1500)
    assert found.times == [START + at for at in range(1500)]
    assert found.min == found.mean == found.max == [float(at % 101) for at in range(1500)]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 90), st.none() | st.floats(0, 1000)), min_size=1, max_size=120),
    st.integers(1, 60),
)
def test_every_value_lies_between_the_least_and_the_most_of_its_stretch(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, float | None]], points: int
) -> None:
    path = str(tmp_path_factory.mktemp("h") / "h.db")
    time, written = 0, []
    for step, value in steps:
        time += step
        written.append((time, value))
    write(path, [tick(at, gpu(power_draw=value) if value is not None else gpu(utilization=0)) for at, value in written])
    values = [value for _, value in written if value is not None]
    if not values:
        return
    found = series(path, "power_draw", 0, time + 1, points)
    assert found.times == sorted(found.times)
    assert min(known(found.min)) == pytest.approx(min(values), abs=0.051)
    assert max(known(found.max)) == pytest.approx(max(values), abs=0.051)
    for low, mean, high in zip(found.min, found.mean, found.max, strict=True):
        assert math.isnan(low) == math.isnan(mean) == math.isnan(high)
        assert math.isnan(low) or low <= mean <= high


@pytest.fixture(scope="module")
def with_spike(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("spike") / "h.db")
    write(path, (tick(at, gpu(temperature=95 if at == 4321 else 40)) for at in range(2 * HOUR)))
    return path


@pytest.mark.parametrize("points", [100_000, 500, 60, 7, 1])
def test_a_spike_of_one_second_is_seen_at_every_resolution(with_spike: str, points: int) -> None:
    found = series(with_spike, "temperature", 0, 2 * HOUR, points)
    assert len(found.times) <= max(points, 2)
    assert max(found.max) == 95
    at = found.max.index(95)
    assert found.times[at] <= START + 4321
    row = 60  # of the coarsest tier in play; it counts in the stretch in which it begins
    assert at + 1 == len(found.times) or found.times[at + 1] + row > START + 4321
    assert min(found.min) == 40
    assert sum(found.mean) / len(found.mean) == pytest.approx(40, abs=0.5)


@pytest.fixture(scope="module")
def with_pause(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("pause") / "h.db")
    times = [at for at in range(3 * HOUR) if not HOUR <= at < 2 * HOUR]
    write(path, (tick(at, gpu(utilization=0)) for at in times))
    return path


@pytest.mark.parametrize("points", [10_000, 400, 50])
def test_a_pause_is_a_gap_and_zero_is_zero(with_pause: str, points: int) -> None:
    found = series(with_pause, "utilization", 0, 3 * HOUR, points)
    assert set(known(found.mean)) == {0.0}
    holes = [time for time, value in zip(found.times, found.mean, strict=True) if math.isnan(value)]
    assert len(holes) == 1
    assert START + HOUR - 300 <= holes[0] <= START + 2 * HOUR


def test_a_value_that_is_missing_for_a_while_is_a_gap_in_its_series_only(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    whole, without = gpu(utilization=5, fan_speed=0), gpu(utilization=5)
    ticks = [tick(at, without if 100 <= at < 200 else whole) for at in range(1400)]
    write(path, ticks)
    fan = series(path, "fan_speed", 0, 1400)
    assert [math.isnan(value) for value in fan.mean] == [100 <= at < 200 for at in range(1400)]
    assert set(known(fan.mean)) == {0.0}
    assert series(path, "utilization", 0, 1400).mean == [5.0] * 1400


def test_a_steady_second_with_jitter_has_no_gaps(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at + (at * 7919 % 97) / 2000, gpu(utilization=1)) for at in range(1500)))
    for points in (300, 590, 600, 610):
        assert set(series(path, "utilization", 300, 900, points).mean) == {1.0}


def test_a_renumbered_gpu_keeps_its_series_and_a_new_one_gets_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    before = [
        tick(at, gpu("GPU-a", index=0, utilization=10), gpu("GPU-b", index=1, utilization=20)) for at in range(700)
    ]
    after = [
        tick(at, gpu("GPU-b", index=0, utilization=20), gpu("GPU-c", index=1, utilization=30))
        for at in range(700, 1400)
    ]
    write(path, before + after)
    assert set(series(path, "utilization", 0, 1400, uuid="GPU-b").mean) == {20.0}
    gone = series(path, "utilization", 0, 1400, uuid="GPU-a")
    assert known(gone.mean) == [10.0] * 700
    with HistoryReader(path) as reader:
        assert [(one.uuid, one.index) for one in reader.gpus(START, START + 1400)] == [
            ("GPU-a", 0), ("GPU-b", 0), ("GPU-c", 1),
        ]  # fmt: skip
        assert [one.uuid for one in reader.gpus(START + 1300, START + 1400)] == ["GPU-b", "GPU-c"]
        (named, *_) = reader.gpus(START, START + 1400)
        assert (named.name, named.memory_total) == ("H100", 80 << 30)
        kinds = [(event.uuids, event.kind) for event in reader.events(START, START + 1400, {"added", "removed"})]
        assert kinds == [(("GPU-a",), "removed"), (("GPU-c",), "added")]


def test_a_metric_that_comes_later_begins_later(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(utilization=1)) for at in range(650)))
    write(path, (tick(at, gpu(utilization=1, sm_active=50.0)) for at in range(650, 1300)))
    later = series(path, "sm_active", 0, 1300)
    assert [math.isnan(value) for value in later.mean] == [at < 650 for at in range(1300)]
    assert known(series(path, "utilization", 0, 1300).mean) == [1.0] * 1300


def test_a_metric_this_version_does_not_know_is_ignored(tmp_path: Path) -> None:
    import sqlite3

    from gpulse.store.history.database import checksum, sum_of

    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(utilization=1, jpeg_utilization=2)) for at in range(1300)))
    connection = sqlite3.connect(path)
    connection.create_function("checksum", -1, checksum)
    for table in ("slot", "slot_copy"):
        connection.execute(f"UPDATE {table} SET key = 'warp_drive' WHERE key = 'jpeg_utilization'")
        connection.execute(f"UPDATE {table} SET sum = {sum_of(table)}")
    connection.commit()
    connection.close()
    with HistoryReader(path) as reader:
        snapshot = next(iter(reader.snapshots(START, START + 10)))
        assert snapshot.gpus[0].utilization == 1
        assert snapshot.gpus[0].jpeg_utilization is None
    write(path, (tick(at, gpu(utilization=1)) for at in range(1300, 1400)))
    assert len(series(path, "utilization", 0, 1400).mean) == 1400


@pytest.mark.parametrize("leap", [-1800, -7, 5000])
def test_a_clock_that_is_set_loses_nothing(tmp_path: Path, leap: int) -> None:
    path = str(tmp_path / "h.db")
    clock = TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        for at in range(4000):
            clock.now = float(at)
            writer.add(tick(at + (leap if at >= 2000 else 0), gpu(power_draw=at, utilization=50)))
    found = series(path, "power_draw", -10_000, 20_000, 20_000)
    assert sorted(known(found.mean)) == [float(at) for at in range(4000)]
    assert found.times == sorted(found.times)
    coarse = series(path, "power_draw", -10_000, 20_000, 100)
    assert (min(known(coarse.min)), max(known(coarse.max))) == (0.0, 3999.0)


def test_a_suspend_is_a_gap(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    clock = TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        for at in range(100):
            clock.now = float(at)
            writer.add(tick(at + (900.0 if at >= 50 else 0.0), gpu(utilization=50)))
    assert sum(map(math.isnan, series(path, "utilization", 0, 1000).mean)) == 1


def test_words_are_shares_of_time_and_come_back_as_words(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    reasons = [("gpu_idle",), ("sw_power_cap", "hw_slowdown"), (), ("sw_power_cap",)]
    write(path, (tick(at, gpu(throttle_reasons=reasons[at % 4], persistence_mode=True)) for at in range(1200)))
    (share,) = series(path, "throttle_reasons:sw_power_cap", 0, 1200, 1).mean
    assert share == pytest.approx(0.5, abs=0.01)
    assert series(path, "throttle_reasons", 0, 4).mean == [1.0, 2.0, 0.0, 1.0]
    with HistoryReader(path) as reader:
        back = [snapshot.gpus[0] for snapshot in reader.snapshots(START, START + 4)]
    assert [set(one.throttle_reasons or ()) for one in back] == [set(words) for words in reasons]
    assert all(one.persistence_mode is True for one in back)


def test_the_host_is_a_series_too(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(utilization=1), cpu_percent=7.5, load=(1.0, 0.5, 0.25)) for at in range(20)))
    with HistoryReader(path) as reader:
        (cpu,) = reader.host_series(["cpu_percent"], START, START + 20)
        assert (cpu.uuid, cpu.mean) == ("", [7.5] * 20)
        assert next(iter(reader.snapshots(START, START + 1))).host.load == (1.0, 0.5, 0.25)
        assert {one.uuid for one in reader.series(["utilization", "cpu_percent"], None, START, START + 20)} == {"GPU-a"}


def test_snapshots_are_rebuilt(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    part = Gpu({"uuid": "MIG-1", "index": 0, "memory_used": 1 << 30})
    whole = Gpu({"uuid": "GPU-a", "index": 3, "name": "H100", "utilization": 40}, state="ok", instances=(part,))
    lost = Gpu({"uuid": "GPU-z", "index": 4, "name": "H100"}, state="lost")
    write(path, (Snapshot(START + at, (whole, lost)) for at in range(1300)))
    with HistoryReader(path) as reader:
        found = list(reader.snapshots(START - 100, START + 5000))
    assert [snapshot.time for snapshot in found] == [START + at for at in range(1300)]
    first, second = found[700].gpus
    assert (first.uuid, first.index, first.utilization, first.state) == ("GPU-a", 3, 40, "ok")
    assert [(one.uuid, one.memory_used) for one in first.instances] == [("MIG-1", 1 << 30)]
    assert (second.uuid, second.state, second.utilization) == ("GPU-z", "lost", None)


def test_nothing_recorded_is_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, [tick(0, gpu(utilization=1))])
    with HistoryReader(path) as reader:
        assert reader.span() == (START, START)
        assert reader.series(["utilization"], ["GPU-x"], START, START + 10) == []
        assert reader.series(["utilization"], None, START + 10, START) == []
        assert reader.series(["utilization"], None, START + 10, START + 20) == []
        assert reader.series(["power_draw"], None, START, START + 20) == []


def changing(at: float) -> Gpu:
    busy = at % HOUR < HOUR / 10
    return gpu(utilization=100 if busy else 0, power_draw=500.0 if busy else 100.0)


def at_changing_intervals(hours: int) -> list[float]:
    """Times a second apart while the GPU is busy, ten seconds apart while it is idle."""
    times, at = [], 0.0
    while at < hours * HOUR:
        at += 1 if at % HOUR < HOUR / 10 else 10
        times.append(at)
    return times


@pytest.fixture(scope="module")
def with_changing_intervals(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("intervals") / "h.db")
    # a value stands for the time since the sample before it
    write(path, (tick(at, changing(at - 0.5)) for at in at_changing_intervals(6)))
    return path


@pytest.mark.parametrize("points", [100_000, 2000, 300, 30, 6, 1])
def test_means_are_weighted_by_time_at_every_resolution(with_changing_intervals: str, points: int) -> None:
    for key, mean in (("utilization", 10.0), ("power_draw", 140.0)):
        found = over_time(series(with_changing_intervals, key, 0, 6 * HOUR + 1, points))
        assert found is not None
        assert found.mean == pytest.approx(mean, rel=0.01)


def test_figures_of_processes_come_back_with_the_process_they_belong_to(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")

    def at(time: int) -> Gpu:
        feeding = {"thread_state": "lock" if time % 4 else "running", "cpu_percent": 37.5, "workers_running": 3}
        one = Process({"pid": 4711, "name": "train", "memory_used": 9 << 30, "running_time": 50.0 + time, **feeding})
        other = Process({"pid": 99, "name": "serve", "memory_used": 1 << 30, "running_time": 9.0 + time, "children": 2})
        return gpu(processes=(one, other), utilization=50)

    write(path, (tick(time, at(time)) for time in range(1300)))
    with HistoryReader(path) as reader:
        found = [snapshot.gpus[0].processes for snapshot in reader.snapshots(START, START + 2000)]
    assert len(found) == 1300
    for time in (3, 700, 1298):
        by_pid = {process.pid: process for process in found[time]}
        first, second = by_pid[4711], by_pid[99]
        state = "lock" if time % 4 else "running"
        assert (first.thread_state, first.cpu_percent, first.workers_running) == (state, 37.5, 3)
        assert (first.memory_used, first.children) == (9 << 30, None)
        assert (second.children, second.thread_state, second.cpu_percent) == (2, None, None)


def test_the_share_of_a_thread_state_is_kept_at_every_resolution(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    states = ("lock", "lock", "lock", "running")
    write(
        path,
        (tick(at, gpu(processes=(Process({"pid": 7, "thread_state": states[at % 4]}),))) for at in range(3600)),
    )
    with HistoryReader(path) as reader:
        (lock,) = reader.series(["processes:0:thread_state:lock"], None, START, START + 3600, 6)
    assert lock.mean == pytest.approx([0.75] * 6, abs=0.01)


def test_a_trace_is_not_stored(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, [tick(0, gpu(power_draw=300.0, power_trace=(299, 301), utilization_trace=(50, 51)))])
    with HistoryReader(path) as reader:
        (stored,) = reader.snapshots(START, START + 1)
    assert (stored.gpus[0].power_draw, stored.gpus[0].power_trace, stored.gpus[0].utilization_trace) == (
        300.0,
        None,
        None,
    )
