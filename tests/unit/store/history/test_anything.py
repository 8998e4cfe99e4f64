"""Whatever a snapshot holds, it is kept or left out, and never in the way of the next."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryReader, HistoryWriter
from tests.unit.snapshots import snapshots
from tests.unit.store.history.ticks import TurnedClock


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(snapshots(), min_size=1, max_size=6), st.lists(st.floats(0, 2000), min_size=6, max_size=6))
def test_any_snapshot_can_be_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, ticks: list[Snapshot], steps: list[float]
) -> None:
    path, clock = str(tmp_path_factory.mktemp("any") / "h.db"), TurnedClock()
    with HistoryWriter(path, clock=clock) as writer:
        for snapshot, step in zip(ticks, steps, strict=False):
            clock.now += step
            writer.add(snapshot)
            writer.flush()
            assert writer.problems == ()
    with HistoryReader(path) as reader:
        first, last = min(one.time for one in ticks), max(one.time for one in ticks)
        assert reader.span() is not None
        reader.series(["utilization", "energy"], None, first, last + 1)
        reader.gpus(first, last + 1)
        reader.usage(first, last + 1)
        assert len(reader.events(first, last + 1, {"start"})) == 1
        newest = max(ticks, key=lambda one: one.time)
        back = list(reader.snapshots(newest.time - 0.001, newest.time + 0.001))
        assert newest.time == pytest.approx(back[-1].time, abs=0.001)
