"""Samples in the history: read back, and refused while another writes there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import GpulseError
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.sinks import HistorySink, Sample
from gpulse.store.history import HistoryReader

START = 1_700_000_000.0


def sample(at: float, use: float) -> Sample:
    snapshot = Snapshot(START + at, (Gpu({"uuid": "GPU-a", "index": 0, "utilization": use}),))
    return Sample(snapshot.time, at, {}, snapshot)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    sink = HistorySink(path)
    sink.open()
    for at, use in enumerate([50.0, 0.0, 100.0]):
        sink.write(sample(at, use))
    sink.close()
    with HistoryReader(path) as reader:
        (found,) = reader.series(["utilization"], None, START, START + 3, 3)
    assert found.mean == [50.0, 0.0, 100.0]


def test_a_second_one_steps_back_and_says_why(tmp_path: Path) -> None:
    first, second = HistorySink(str(tmp_path / "history.db")), HistorySink(str(tmp_path / "history.db"))
    first.open()
    with pytest.raises(GpulseError, match="history"):
        second.open()
    second.close()
    first.close()
    second.open()
    second.close()


def test_closing_twice_and_without_opening_is_no_trouble(tmp_path: Path) -> None:
    sink = HistorySink(str(tmp_path / "history.db"))
    sink.close()
    sink.open()
    sink.close()
    sink.close()
    sink.write(sample(0, 1.0))
