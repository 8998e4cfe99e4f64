"""A snapshot is a value: compared by what it holds, and never changed."""

from __future__ import annotations

import pytest
from hypothesis import given

from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Problem, Snapshot
from tests.unit.snapshots import snapshots


@given(snapshot=snapshots())
def test_a_snapshot_equals_one_made_of_the_same_parts(snapshot: Snapshot) -> None:
    same = Snapshot(
        snapshot.time, snapshot.gpus, snapshot.host, dict(snapshot.driver), snapshot.problems, snapshot.serving
    )
    assert same == snapshot
    assert hash(same) == hash(snapshot)


def test_a_difference_in_any_part_is_a_difference() -> None:
    whole = Snapshot(1.0)
    others = [
        Snapshot(2.0),
        Snapshot(1.0, gpus=(Gpu({}),)),
        Snapshot(1.0, host=Host({"name": "x"})),
        Snapshot(1.0, driver={"version": "1"}),
        Snapshot(1.0, problems=(Problem("a", "b"),)),
    ]
    assert all(whole != other for other in others)


def test_a_snapshot_cannot_be_changed() -> None:
    snapshot = Snapshot(1.0)
    with pytest.raises(AttributeError, match="cannot be changed"):
        snapshot.time = 2.0  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be changed"):
        del snapshot.time


def test_problems_are_equal_by_what_they_say() -> None:
    assert Problem("nvml", "lost", "reset") == Problem("nvml", "lost", "reset")
    assert len({Problem("nvml", "lost"), Problem("nvml", "lost"), Problem("nvml", "found")}) == 2
