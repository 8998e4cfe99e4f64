"""What a process has once, each with an owner that can be made anew: the quiet monitor, and what a notebook was told."""

from __future__ import annotations

from typing import Any

import pytest

from gpulse.monitor import monitor as monitors
from gpulse.monitor.monitor import Monitor
from gpulse.monitor.process import EarlierCells
from gpulse.monitor.quiet import QuietMonitor


def test_each_owner_starts_its_own_quiet_monitor_and_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULSE_SOURCE", "demo")
    found = []
    for _ in range(2):
        quiet = QuietMonitor()
        try:
            found.append(quiet.sampling())
            assert quiet.sampling() is found[-1]
        finally:
            quiet.stop()
        assert monitors.running == []
    assert None not in found
    assert found[0] is not found[1]


def test_a_monitor_of_the_program_is_used_instead() -> None:
    quiet = QuietMonitor()
    with Monitor(source="demo", mode="thread") as own:
        assert quiet.sampling() is own


class Cell(Monitor):
    """A monitor that a cell of a notebook left running."""

    def __init__(self, number: int, **options: Any) -> None:
        super().__init__(**options)
        self._cell = number
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_a_notebook_is_told_once_that_a_monitor_was_replaced() -> None:
    for _ in range(2):  # with another owner once more
        said: list[str] = []
        cells = EarlierCells()
        cells.replace([Cell(1)], 2, said.append)
        assert said == [], "nobody misses one without sinks and report"
        for number in (2, 3):
            left, current = Cell(number - 1, report=True), Cell(number, report=True)
            cells.replace([left, current], number, said.append)
            assert (left.stopped, current.stopped) == (True, False)
        assert len(said) == 1
