"""How long things are kept, counted in recorded time."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.store.history.sealing import TIERS
from tests.unit.store.history.ticks import START, TurnedClock, gpu, series, tick, write

DAY = 86_400


def covered(path: str) -> dict[int, float]:
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute("SELECT tier, sum(covered) FROM block GROUP BY tier"))
    finally:
        connection.close()


@pytest.fixture(scope="module")
def hundred_days(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A hundred days with a tick every ten minutes, and a spike in each that nothing follows."""
    path = str(tmp_path_factory.mktemp("long") / "h.db")
    ticks = (tick(at, gpu(utilization=100 if at % DAY == 600 else 10)) for at in range(0, 100 * DAY, 600))
    write(path, ticks)
    return path


def test_each_tier_is_kept_as_long_as_it_says_and_not_much_longer(hundred_days: str) -> None:
    kept = covered(hundred_days)
    for tier in TIERS:
        longest = max(tier.spans, default=600) + 3600  # it is tidied up once an hour
        assert tier.keep <= kept[tier.seconds] <= tier.keep + longest


def test_ninety_days_can_be_read_and_every_spike_is_there(hundred_days: str) -> None:
    found = series(hundred_days, "utilization", 10 * DAY, 100 * DAY, 90)
    assert len(found.times) == 90
    assert set(found.max) == {100.0}
    assert set(found.min) == {10.0}
    with HistoryReader(hundred_days) as reader:
        span = reader.span()
    assert span is not None
    assert span[1] - span[0] >= 90 * DAY - 600


def test_old_days_are_still_read_when_looked_at_closely(hundred_days: str) -> None:
    found = series(hundred_days, "utilization", 20 * DAY, 20 * DAY + 7200, 600)
    assert found.mean == [10.0, 100.0, *[10.0] * 10]


def test_what_is_older_than_all_blocks_goes_from_the_other_tables(hundred_days: str) -> None:
    with HistoryReader(hundred_days) as reader:
        assert reader.events(START, START + DAY) == []


def test_a_clock_far_ahead_deletes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at, gpu(utilization=at % 100)) for at in range(0, 6000, 10)))
    write(path, (tick(at + 3650 * DAY, gpu(utilization=1)) for at in range(0, 3000, 10)))
    write(path, (tick(at, gpu(utilization=at % 100)) for at in range(6000, 9000, 10)))
    found = series(path, "utilization", 0, 9000)
    assert found.mean == [float(at % 100) for at in range(0, 9000, 10)]


def test_many_ticks_a_second_do_not_shorten_what_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    write(path, (tick(at / 10, gpu(utilization=at % 100)) for at in range(13_000)))
    assert covered(path)[0] == 1200
    found = series(path, "utilization", 0, 1300, 100_000)
    assert found.mean == [float(at % 100) for at in range(13_000)]


def test_the_size_is_limited(tmp_path: Path) -> None:
    import random

    chance, clock = random.Random(1), TurnedClock()
    path, limit = str(tmp_path / "h.db"), 150_000
    with HistoryWriter(path, clock=clock, size_limit=limit) as writer:
        for at in range(0, 6 * 3600, 2):
            clock.now = float(at)
            writer.add(tick(at, gpu(energy=chance.random() * 1e12, power_draw=chance.random() * 1000)))
    connection = sqlite3.connect(path)
    pages, free = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
    connection.close()
    assert (pages - free) * 4096 < limit + 100_000  # beside the ticks of ten minutes
    assert len(series(path, "energy", 0, 6 * 3600, 100).times) > 50
