"""Times that are asked for, and usage as data."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.model.catalog import Process
from gpulse.model.when import stretch
from gpulse.store.history import HistoryReader
from gpulse.store.lines import csv_rows
from gpulse.surfaces.history.exports import table_rows
from gpulse.surfaces.history.tables import HistoryAnswer, HistoryRequest
from tests.unit.store.history.ticks import START, gpu, tick, write


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_the_hour_that_comes_twice_is_asked_for_whole() -> None:
    first, last = stretch(None, "2026-10-25 02:00", "2026-10-25 02:59:59", now=1_800_000_000.0)
    assert last - first == 7199


@pytest.mark.usefixtures("berlin")
def test_an_hour_that_the_clock_leaps_over_is_a_time_all_the_same() -> None:
    first, last = stretch(None, "2026-03-29 02:30", "2026-03-29 04:00", now=1_800_000_000.0)
    assert 0 < last - first <= 5400


def test_usage_is_a_table_of_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "h.db")
    one = Process({"pid": 1, "user": 'a,"da', "name": "python", "running_time": 100.0})
    write(path, (tick(at, gpu(processes=(one.replace(running_time=at + 100.0),))) for at in range(3601)))
    with HistoryReader(path) as reader:
        answer = HistoryAnswer(reader, HistoryRequest(START, START + 3601, ["utilization"], None, 10, "user"))
    (row,) = csv.DictReader(csv_rows(table_rows(answer, "usage")))
    assert (row["user"], row["gpu_hours"], row["processes"], row["energy_estimate"]) == ('a,"da', "1", "1", "")
