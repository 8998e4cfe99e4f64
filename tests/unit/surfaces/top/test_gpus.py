"""The GPUs on the live screen: honest about what is old, gone or unknown."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.screen.grid import Grid
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels.gpus import paint
from gpulse.surfaces.top.state import State
from tests.unit.snapshots import snapshots
from tests.unit.surfaces.top.screens import machine, painted, screen, troubled


def _drawn(state: State, columns: int, rows: int) -> Grid:
    grid = Grid(columns, rows)
    paint(grid, Area(0, 0, rows, columns), state)
    return grid


def _one(gpu: Gpu, columns: int = 100, rows: int = 4, unicode: bool = True) -> str:
    return "\n".join(_drawn(screen(columns, rows, Snapshot(1e9, (gpu,)), unicode), columns, rows).text())


def _style(grid: Grid, text: str) -> str:
    """Return the style of a text on the screen."""
    for row, line in enumerate("".join(chars) for chars in grid.chars):
        if (at := line.find(text)) >= 0:
            return grid.styles[row][at]
    raise AssertionError(text)


class TestHonesty:
    def test_what_is_unknown_is_a_dash_and_what_is_zero_a_zero(self) -> None:
        text = _one(Gpu({"index": 0, "name": "X", "utilization": 0, "temperature": 0}))
        assert " 0%" in text
        assert "0°C" in text
        assert text.splitlines()[2].split()[-1] == "-"

    def test_a_value_on_the_way_is_not_unknown(self) -> None:
        gpu = Gpu({"index": 0, "utilization": 50}, {"sm_active": "pending", "tensor_active": "unsupported"})
        text = _one(gpu)
        assert text.splitlines()[1].endswith("…")
        assert "tensor" not in text

    def test_every_trouble_has_its_words(self) -> None:
        text = "\n".join(_drawn(screen(120, 30, troubled()), 120, 30).text())
        for words in (
            "lost for 12m05s", "lost (XID 79)", "not responding for 45s", "asleep for 1d01h", "no permission",
            "too hot", "345 MHz", "2 memory errors", "unattributed 40.0 GiB", "fan 45%",
        ):  # fmt: skip
            assert words in text

    def test_old_data_is_pale_and_says_its_age(self) -> None:
        for columns, rows in ((120, 16), (80, 9)):
            state = screen(columns, rows)
            assert state.stale == ""
            state.now += 3.5
            grid = _drawn(state, columns, rows)
            assert _style(grid, "3s old") == "warn"
            assert _style(grid, "97%") == "faint"

    def test_the_past_is_not_old_data(self) -> None:
        state = screen(80, 24)
        state.now += 60
        state.back = 60.0
        assert state.stale == ""

    def test_heat_is_judged_by_the_limit(self) -> None:
        gpu = Gpu({"index": 0, "utilization": 1, "temperature": 88, "temperature_limit": 89})
        assert _style(_drawn(screen(100, 4, Snapshot(1e9, (gpu,))), 100, 4), "88°C") == "critical"


class TestUnits:
    def test_fahrenheit(self) -> None:
        state = screen(120, 16)
        state.settings.fahrenheit = True
        text = "\n".join(_drawn(state, 120, 16).text())
        assert "151°F" in text
        assert "°C" not in text

    def test_decimal(self) -> None:
        state = screen(120, 16)
        state.settings.decimal = True
        assert "71.7/85.5 GB" in "\n".join(_drawn(state, 120, 16).text())


class TestScrolling:
    def test_what_does_not_fit_is_counted_and_its_problems_are_named(self) -> None:
        state = screen(60, 10, machine(64))
        assert _drawn(state, 60, 10).text()[-1] == "↓56 more  14, 22, 30, 38, 46, 54, 62 too hot"
        state.gpu_scrolled = 10
        lines = _drawn(state, 60, 10).text()
        assert lines[1].startswith("10 ")
        assert lines[-1] == "↑10 ↓46 more  6, 22, 30, 38, 46, 54, 62 too hot"
        assert _drawn(state, 30, 10).text()[-1] == "↑10 ↓46 more  7 too hot"
        state.gpu_scrolled = 1000
        assert _drawn(state, 60, 10).text()[-2].startswith("63 ")

    def test_every_gpu_is_visible_on_a_small_screen_if_the_process_table_can_give_the_rows(self) -> None:
        state = screen(60, 15)
        lines = painted(state).text()
        assert any(line.startswith("7 ") for line in lines)
        assert "too hot  mira" in "\n".join(lines)

    def test_columns_run_down_first(self) -> None:
        lines = _drawn(screen(80, 9, machine(16)), 80, 9).text()
        assert lines[1].startswith(" 0")
        assert " 8 " in lines[1]


class TestPeople:
    def test_several_processes_of_one_user_are_one_name(self) -> None:
        processes = tuple(
            Process({"pid": at, "user": "ada", "name": "python", "memory_used": 1 << 30}) for at in range(3)
        )
        assert "ada python ×3" in _one(Gpu({"index": 0, "utilization": 1}, processes=processes))

    def test_who_does_not_fit_is_counted(self) -> None:
        processes = tuple(
            Process({"pid": at, "user": f"somebody{at}", "name": "python", "memory_used": 1 << 30}) for at in range(9)
        )
        last = _one(Gpu({"index": 0, "utilization": 1}, processes=processes), 60).splitlines()[3]
        assert last.split()[-1].startswith("+")

    def test_hostile_names_do_not_act(self) -> None:
        evil = "\x1b[2J\u202e漢字\n"
        processes = (Process({"pid": 1, "user": evil, "name": evil}),)
        for columns in (30, 60, 120):
            text = _one(Gpu({"index": 0, "name": evil, "utilization": 1}, processes=processes), columns)
            assert "\x1b" not in text
            assert "\u202e" not in text


class TestInstances:
    def test_they_stand_under_their_gpu(self) -> None:
        text = "\n".join(_drawn(screen(120, 30, troubled()), 120, 30).text())
        assert "└ 3g.30gb" in text
        assert "SM  25%  ada python" in text
        lines = _drawn(screen(80, 14, troubled()), 80, 14).text()
        assert sum("└" in line for line in lines) == 3


class TestAnything:
    @given(snapshots(), st.integers(1, 200), st.integers(1, 50), st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_any_machine_on_any_screen(self, sample: Snapshot, columns: int, rows: int, unicode: bool) -> None:
        state = screen(columns, rows, sample, unicode)
        grid = painted(state)
        assert all(len(row) == columns for row in grid.chars)
        assert all(char.isprintable() for row in grid.text() for char in row)
