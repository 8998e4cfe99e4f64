"""Accounting: who used what, so that it adds up to what the GPUs could have done."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.analysis.accounting import Accounting, RecordedMachine
from gpulse.errors import UsageError
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryReader, HistoryWriter
from tests.unit.store.history.ticks import START, TurnedClock

DAY = 86_400
EVERY = 60.0
USERS = ("ada", "bob", "cy")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Week:
    """A machine with two GPUs that somebody watches, and what happened in truth; the machine's clock is set now and then."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._clock = TurnedClock()
        self._random = random.Random(1)
        self._holders: list[tuple[str, float] | None] = [None] * 2
        self._ahead = 0.0  # by how much the machine's clock is wrong
        self.held = dict.fromkeys(USERS, 0.0)
        self.unused = self.watched = 0.0

    def _change(self, at: float) -> None:
        for gpu in range(2):
            if self._random.random() < 0.004:
                user = self._random.choice(USERS)
                self._holders[gpu] = None if self._random.random() < 0.5 else (user, at)

    def _gpus(self, at: float) -> Iterator[Gpu]:
        for index, holder in enumerate(self._holders):
            processes: tuple[Process, ...] = ()
            if holder is not None:
                born = int(holder[1]) % 30_000 + 100 * index
                running = Process(
                    {"pid": born, "user": holder[0], "name": "python", "running_time": at - holder[1] + 1}
                )
                processes = (running.replace(memory_used=1 << 30, sm_utilization=50),)
            yield Gpu(
                {"uuid": f"GPU-{index}", "index": index, "name": "H100", "power_draw": 300.0}, processes=processes
            )

    def run(self, start: float, end: float, killed: bool = False, leap: float = 0.0) -> None:
        """Watch from one time to another, then stop or be killed; half way, the clock is set."""
        writer = HistoryWriter(self._path, clock=self._clock)
        at = start
        while at < end:
            self._change(at)
            self._ahead += leap if at == start + 60 * EVERY else 0.0
            self._clock.now += EVERY if killed else 0.5  # the clock by which it writes: less often is faster
            writer.add(Snapshot(START + at + self._ahead, tuple(self._gpus(at))))
            if at > start:  # the first sample of a recorder stands for no time
                self.watched += 2 * EVERY
                for holder in self._holders:
                    if holder is None:
                        self.unused += EVERY
                    else:
                        self.held[holder[0]] += EVERY
            at += EVERY
        if killed:
            writer._lock.release()  # what kill -9 leaves behind: no last words
            writer._connection.close()  # type: ignore[union-attr]
        else:
            writer.close()


def accounting(path: str, *by: str, start: float = START - DAY, end: float = START + 10 * DAY) -> Accounting:
    with HistoryReader(path) as reader:
        return Accounting([RecordedMachine(reader, "box", start, end)], start, end, by)


@pytest.mark.usefixtures("utc")
def test_a_week_with_restarts_and_clock_changes_adds_up_to_its_capacity(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    week = Week(path)
    leaps = (-3600.0, 3600.0, 7200.0, -600.0, -5400.0, 90.0, DAY)
    for day in range(7):
        for hour in range(0, 24, 6):
            begin = day * DAY + hour * 3600
            week.run(begin, begin + 3 * 3600, leap=leaps[day] if hour == 6 else 0.0)
            week.run(
                begin + 3 * 3600 + 60, begin + 6 * 3600 - 60, killed=hour == 12, leap=-leaps[day] if hour == 18 else 0.0
            )
    found = accounting(path, "user")
    hours = {entry.keys[0]: entry.gpu_hours for entry in found.entries if entry.kind == "used"}
    capacity = found.capacity_hours
    assert capacity == pytest.approx(week.watched / 3600, rel=0.005)
    for user in USERS:
        assert hours[user] == pytest.approx(week.held[user] / 3600, rel=0.005)
    assert found.unused_hours == pytest.approx(week.unused / 3600, rel=0.005)
    assert sum(hours.values()) + found.unused_hours == pytest.approx(capacity, rel=0.005)
    assert sum(entry.share or 0.0 for entry in found.entries) == pytest.approx(100, abs=0.5)
    assert found.unknown_hours == pytest.approx(0.0, abs=0.005 * (capacity or 0.0))
    for by in (("gpu",), ("day",), ("week",), ("month",), ("day", "user"), ("host", "gpu", "hour")):
        again = accounting(path, *by)
        assert again.capacity_hours == pytest.approx(capacity, rel=1e-9)
        assert again.used_hours + again.unused_hours == pytest.approx(capacity, rel=0.005)
    joules = week.watched * 300.0
    assert found.total.energy == pytest.approx(joules, rel=0.005)


def one(at: float, *gpus: Gpu) -> Snapshot:
    return Snapshot(START + at, gpus)


def held(at: float, index: int = 0, count: int = 1, **texts: str) -> Gpu:
    known = [
        Process({"pid": 100 + pid, "user": "ada", "running_time": at + 10}).replace(**texts) for pid in range(count)
    ]
    return Gpu({"uuid": f"GPU-{index}", "index": index, "name": "H100"}, processes=tuple(known))


def recorded(path: Path, gpus: object, seconds: int = 3600, every: int = 10) -> str:
    clock = TurnedClock()
    with HistoryWriter(str(path), clock=clock) as writer:
        for at in range(0, seconds + 1, every):
            clock.now = float(at)
            writer.add(one(at, *gpus(at)))  # type: ignore[operator]
    return str(path)


def test_a_gpu_that_is_lost_is_neither_used_nor_unused(tmp_path: Path) -> None:
    def gpus(at: int) -> tuple[Gpu, ...]:
        lost = Gpu({"uuid": "GPU-1", "index": 1}, state="lost")
        return held(at), lost if at > 1800 else held(at, 1, 0)

    found = accounting(recorded(tmp_path / "h.db", gpus), "user")
    assert [(entry.kind, round(entry.gpu_hours, 2)) for entry in found.entries] == [
        ("used", 1.0),
        ("unused", 0.5),
        ("unknown", 0.5),
    ]
    assert (round(found.capacity_hours or 0, 2), round(found.unknown_hours or 0, 2)) == (2.0, 0.5)


def test_lists_that_are_read_now_and_then_stand_for_all_the_time_between(tmp_path: Path) -> None:
    def gpus(at: int) -> tuple[Gpu, ...]:
        if at % 50:
            return (Gpu({"uuid": "GPU-0", "index": 0, "power_draw": 100.0}, {"processes": "skipped"}),)
        return (held(at).replace(power_draw=100.0),)

    found = accounting(recorded(tmp_path / "h.db", gpus), "user")
    (entry,) = found.entries[:1]
    assert entry.keys == ("ada",)
    assert entry.gpu_hours == pytest.approx(1.0, rel=0.001)
    assert entry.energy == pytest.approx(360_000, rel=0.02)


def test_slices_of_a_gpu_add_up_to_it(tmp_path: Path) -> None:
    def gpus(at: int) -> tuple[Gpu, ...]:
        first = Gpu({"uuid": "MIG-a", "index": 0, "name": "H100 MIG 3g.40gb"}, processes=held(at).processes)
        second = Gpu({"uuid": "MIG-b", "index": 1, "name": "H100 MIG 1g.10gb"})
        return (Gpu({"uuid": "GPU-0", "index": 0, "name": "H100"}, instances=(first, second)),)

    found = accounting(recorded(tmp_path / "h.db", gpus), "gpu")
    (entry,) = found.entries
    assert entry.keys == ("0",)
    assert entry.gpu_hours == pytest.approx(3 / 7, rel=0.01)
    assert entry.capacity_hours == pytest.approx(1.0)
    assert entry.unused_hours == pytest.approx(4 / 7, rel=0.01)


def test_projects_groups_and_names_of_jobs(tmp_path: Path) -> None:
    def gpus(at: int) -> tuple[Gpu, ...]:
        return held(at, 0, project="vision"), held(at, 1, account="speech", job="slurm:7", job_name="train")

    path = recorded(tmp_path / "h.db", gpus)
    assert {entry.keys for entry in accounting(path, "project").entries} == {("vision",), ("speech",), (None,)}
    jobs = {entry.keys[0] for entry in accounting(path, "job").entries if entry.kind == "used"}
    assert jobs == {"slurm:7 train", None}
    with HistoryReader(path) as reader:
        machine = RecordedMachine(reader, "box", START, START + 4000)
    grouped = Accounting([machine], START, START + 4000, ["group"], lambda user: {"ada": "lab"}.get(user or ""))
    assert [(entry.keys, round(entry.gpu_hours, 2)) for entry in grouped.entries][:1] == [(("lab",), 2.0)]


def test_time_that_was_not_counted_as_watched_has_no_capacity(tmp_path: Path) -> None:
    import sqlite3

    path = recorded(tmp_path / "h.db", lambda at: (held(at),))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM usage WHERE process IN (SELECT id FROM process WHERE pid < 0)")
    found = accounting(path, "user")
    assert (found.capacity_hours, found.unknown_hours, found.entries[0].share) == (None, None, None)
    assert found.used_hours == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Europe/Berlin"])
def test_a_day_ends_at_local_midnight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        noon = time.mktime((2023, 11, 15, 0, 0, 0, 0, 0, -1)) - START
        path = str(tmp_path / "h.db")
        clock = TurnedClock()
        with HistoryWriter(path, clock=clock) as writer:
            for at in range(int(noon) - 7200, int(noon) + 3601, 30):
                clock.now = float(at)
                writer.add(one(at, held(at)))
        days = {entry.keys[0]: entry.gpu_hours for entry in accounting(path, "day").entries}
    finally:
        monkeypatch.undo()
        time.tzset()
    assert days == {"2023-11-14": pytest.approx(2.0, abs=0.02), "2023-11-15": pytest.approx(1.0, abs=0.02)}


def test_words_that_are_no_owner_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'user'"):
        Accounting([], 0.0, 1.0, ["usr"])
    with pytest.raises(UsageError, match="twice"):
        Accounting([], 0.0, 1.0, ["user", "user"])
