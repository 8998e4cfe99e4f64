"""Recorded time: what each block names, what is told of blocks that name nothing, restarts, and slower sampling."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gpulse.store.history import HistoryReader, verify
from gpulse.store.history.columns import Column, pack, unpack
from gpulse.store.history.database import checksum, sum_of
from gpulse.store.history.recorded import RecordedSpan, RecordedTime, pack_stretches, unpack_stretches
from tests.unit.store.history.ticks import START, gpu, tick, write


def recorded(path: str, start: float, end: float) -> RecordedTime:
    with HistoryReader(path) as reader:
        return reader.recorded(START + start, START + end)


def gaps(path: str, start: float, end: float) -> list[tuple[float, float]]:
    return [
        (first - START, last - START) for first, last in recorded(path, start, end).gaps(START + start, START + end)
    ]


def with_outage(path: str) -> None:
    write(path, (tick(at, gpu(utilization=50)) for at in range(7200) if not 2000 <= at < 2600))


def forget_stretches(path: str) -> None:
    """Make a history what it was before blocks named their stretches."""
    connection = sqlite3.connect(path)
    connection.create_function("checksum", -1, checksum)
    for block, times in connection.execute("SELECT id, times FROM block").fetchall():
        named = unpack_stretches(times)
        assert named is not None
        connection.execute("UPDATE block SET times = ? WHERE id = ?", (times[: -len(pack_stretches(named))], block))
    connection.execute(f"UPDATE block SET sum = {sum_of('block')}")
    connection.commit()
    connection.close()


def test_a_history_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    with_outage(path)
    forget_stretches(path)
    assert verify(path).sound
    assert gaps(path, 0, 7200) == [(1999, 2600)]
    assert gaps(path, 2100, 2500) == [(2100, 2500)]
    with HistoryReader(path) as reader:
        assert reader.series(["utilization"], None, START + 2100, START + 2500) == []
        assert [*reader.snapshots(START + 2100, START + 2500)] == []
    write(path, (tick(at, gpu(utilization=50)) for at in range(7200, 12_000)))
    ((first, last),) = gaps(path, 0, 12_000)  # blocks of 10 s were joined, and name what was known of them
    assert first == pytest.approx(1999, abs=10)
    assert last == 2600


def test_an_earlier_version_reads_a_block_that_names_its_stretches() -> None:
    times = pack({0: Column.of_ticks(6, [1.0, 2.0]), 2: Column.of_ticks(6, [1.0, 1.0])})
    named = times + pack_stretches([RecordedSpan(0.0, 2.0, 1.0)])
    assert unpack(named, 2)[0].mean == [1.0, 2.0]
    assert unpack_stretches(times) is None
    assert unpack_stretches(named) == [RecordedSpan(0.0, 2.0, 1.0)]


def test_every_second_that_a_restart_took_is_known(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    for first, last in ((0, 1500), (1507, 3000), (3100, 9000)):
        write(path, (tick(at, gpu(utilization=50)) for at in range(first, last)))
    assert recorded(path, 0, 9000).seconds(START, START + 9000) == 1499 + 1492 + 5899
    assert gaps(path, 0, 9000) == [(2999, 3100)]  # seven seconds are none


def test_slower_sampling_is_no_gap(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    times = [*range(600), *range(600, 3000, 10), *range(3000, 3600)]
    write(path, (tick(at, gpu(utilization=50)) for at in times))
    assert gaps(path, 0, 3600) == []
    assert recorded(path, 0, 3600).seconds(START, START + 3600) == 3599


@pytest.mark.parametrize("interval", [1, 60])
def test_time_before_the_first_and_after_the_last_sample_is_a_gap(tmp_path: Path, interval: int) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(utilization=50)) for at in range(0, 3601, interval)))
    assert gaps(path, -7200, 10_000) == [(-7200, 0), (3600, 10_000)]
    assert gaps(path, -2, 3602) == []
    assert gaps(path, 50_000, 60_000) == [(50_000, 60_000)]
    found = recorded(path, 3600, 3600)
    assert found.holds(START + 3600 + 4 * interval)
    assert not found.holds(START + 3600 + max(16, 6 * interval))


def test_an_empty_history_has_recorded_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, [])
    assert gaps(path, 0, 10) == [(0, 10)]
    assert not recorded(path, 0, 0).holds(START)
