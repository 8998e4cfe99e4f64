"""The host, the header and the footer: what fits is whole, and what is not now says so."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from gpulse.model.catalog import Host
from gpulse.model.snapshot import Snapshot
from gpulse.screen.grid import Grid
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels import rows
from gpulse.surfaces.top.state import State
from tests.unit.surfaces.top.screens import HINTS, screen


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _host(state: State, height: int) -> list[str]:
    grid = Grid(state.columns, height)
    rows.paint_host(grid, Area(0, 0, height, state.columns), state)
    return grid.text()


def _header(state: State) -> tuple[str, list[str]]:
    grid = Grid(state.columns, 1)
    rows.paint_header(grid, Area(0, 0, 1, state.columns), state)
    return grid.text()[0], grid.styles[0]


def _footer(state: State) -> str:
    grid = Grid(state.columns, 1)
    rows.paint_footer(grid, Area(0, 0, 1, state.columns), state, HINTS)
    return grid.text()[0]


class TestHost:
    def test_everything_where_there_is_width(self) -> None:
        line = _host(screen(250, 1), 1)[0]
        for word in ("CPU", "memory", "load", "iowait", "disk read", "write", "net in", "out", "swap"):
            assert word in line

    @pytest.mark.parametrize("columns", [40, 60, 80, 100, 160, 250, 400])
    @pytest.mark.parametrize("rows", [1, 2, 3])
    def test_processors_and_memory_always(self, columns: int, rows: int) -> None:
        text = "\n".join(_host(screen(columns, rows), rows))
        assert "CPU" in text
        assert "89.0/1024 GiB" in text

    def test_a_bar_for_each_core(self) -> None:
        sample = Snapshot(1.0, host=Host({"cpu_percent": 50, "cpu_per_core": (0.0, 50.0, 100.0)}))
        assert _host(screen(80, 2, sample), 2)[1] == "cores ▁▄█"
        assert _host(screen(80, 2, sample, unicode=False), 2)[1] == "cores 059"

    def test_more_cores_than_columns_share_bars(self) -> None:
        sample = Snapshot(1.0, host=Host({"cpu_percent": 50, "cpu_per_core": (0.0, 100.0) * 64}))
        line = _host(screen(60, 2, sample), 2)[1]
        assert line.startswith("cores÷3")
        assert len(line) <= 60

    def test_an_unknown_host_is_dashes(self) -> None:
        assert _host(screen(80, 1, Snapshot(1.0)), 1)[0].count("-") == 2


class TestHeader:
    def test_machine_and_clock(self) -> None:
        line, styles = _header(screen(100, 24))
        assert line.startswith("demo · 8 × H100 80GB HBM3 · driver 580.159.04 · CUDA 13.0")
        assert line.endswith("22:20:00")
        assert "loud" not in styles

    @pytest.mark.parametrize("columns", [40, 60, 200])
    def test_the_past_is_said_aloud(self, columns: int) -> None:
        state = screen(columns, 24)
        state.back = 125.0
        state.shown = state.history.sample_at(state.now - 125)
        line, styles = _header(state)
        assert "2m05s ago  22:17:55" in line
        assert "loud" in styles

    def test_paused_and_stale(self) -> None:
        state = screen(80, 24)
        state.now += 30
        assert "NO NEW DATA: 30s old" in _header(state)[0]
        state.paused = True
        line, styles = _header(state)
        assert "PAUSED" in line
        assert "loud" in styles


class TestFooter:
    def test_only_whole_hints(self) -> None:
        for columns in range(1, 80):
            words = _footer(screen(columns, 24)).split("  ")
            assert all(word in [f"{key} {what}" for key, what in HINTS] for word in words if word)

    def test_a_message_stands_instead(self) -> None:
        state = screen(80, 24)
        state.message = "sent TERM to 4711"
        assert _footer(state) == "sent TERM to 4711"

    def test_the_filter_keeps_the_end_of_what_is_typed(self) -> None:
        state = screen(40, 24)
        state.dialog, state.editing = "filter", "x" * 60 + "end"
        assert _footer(state).startswith("filter: ")
        assert _footer(state).endswith("end█")

    def test_the_line_of_time(self) -> None:
        state = screen(100, 24)
        state.back = 200.0
        line = _footer(state)
        assert line.startswith("22:13:21 ─")
        assert "● " not in line
        assert "now" in line
        assert "F1 help" in line
