"""How long things are kept, counted in recorded time."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gpulse.store.history import HistoryReader, HistoryWriter, sealing
from gpulse.store.history.sealing import TIERS, Tier
from tests.unit.store.history.ticks import START, TurnedClock, gpu, series, tick, write

DAY = 86_400


def covered(path: str) -> dict[int, float]:
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute("SELECT tier, sum(covered) FROM block GROUP BY tier"))
    finally:
        connection.close()


# A hundred days have the same blocks ten times as often: here everything is kept for a tenth of its time.
SHORT_TIERS = tuple(Tier(tier.seconds, tier.spans, tier.keep // 10) for tier in TIERS)


def test_the_resolutions_are_kept_for_a_day_a_week_and_ninety_days() -> None:
    assert {tier.seconds: tier.keep / DAY for tier in TIERS} == {0: 1, 10: 7, 60: 90, 600: 90}


@pytest.fixture(scope="module")
def ten_days(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten days with a tick every ten minutes, and a spike in each that nothing follows."""
    path = str(tmp_path_factory.mktemp("long") / "h.db")
    ticks = (tick(at, gpu(utilization=100 if at % DAY == 600 else 10)) for at in range(0, 10 * DAY, 600))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "TIERS", SHORT_TIERS)
        write(path, ticks)
    return path


def test_each_tier_is_kept_as_long_as_it_says_and_not_much_longer(ten_days: str) -> None:
    kept = covered(ten_days)
    assert kept.keys() == {tier.seconds for tier in SHORT_TIERS}
    for tier in SHORT_TIERS:
        longest = max(tier.spans, default=600) + 3600  # it is tidied up once an hour
        assert tier.keep <= kept[tier.seconds] <= tier.keep + longest


def test_all_that_is_kept_can_be_read_and_every_spike_is_there(ten_days: str) -> None:
    found = series(ten_days, "utilization", DAY, 10 * DAY, 9)
    assert len(found.times) == 9
    assert set(found.max) == {100.0}
    assert set(found.min) == {10.0}
    with HistoryReader(ten_days) as reader:
        span = reader.span()
    assert span is not None
    assert span[1] - span[0] >= 9 * DAY - 600


def test_old_days_are_still_read_when_looked_at_closely(ten_days: str) -> None:
    found = series(ten_days, "utilization", 2 * DAY, 2 * DAY + 7200, 600)
    assert found.mean == [10.0, 100.0, *[10.0] * 10]


def test_what_is_older_than_all_blocks_goes_from_the_other_tables(ten_days: str) -> None:
    with HistoryReader(ten_days) as reader:
        span = reader.span()
        assert span is not None
        assert span[0] > START
        assert reader.events(START, span[0]) == []


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


def test_layouts_and_facts_that_nothing_refers_to_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word that comes or goes makes another layout, and the job that a GPU was given to is a fact."""
    monkeypatch.setattr(sealing, "TIERS", (Tier(0, (), 6 * 3600), Tier(600, (), 6 * 3600)))
    path, ticks = str(tmp_path / "h.db"), 3 * 144
    write(
        path,
        (
            tick(600.0 * at, gpu(job=f"slurm:{at // 6}", throttle_reasons=(f"word{at % 50}",), temperature=at % 50))
            for at in range(ticks)
        ),
    )
    connection = sqlite3.connect(path)
    try:
        tables = ("layout", "layout_copy", "fact")
        layouts, copies, facts = (connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables)
    finally:
        connection.close()
    assert layouts == copies < 15
    assert facts < 15
    assert series(path, "temperature", 600.0 * (ticks - 12), 600.0 * ticks).mean == [
        at % 50 for at in range(ticks - 12, ticks)
    ]
    with HistoryReader(path) as reader:
        (known,) = reader.gpus(START + 600.0 * (ticks - 6), START + 600.0 * ticks)
        assert known.facts["job"] == f"slurm:{(ticks - 1) // 6}"
