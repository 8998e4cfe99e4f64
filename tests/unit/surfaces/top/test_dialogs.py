"""Dialogs fit or scroll on any screen, hide what is under them and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS
from gpulse.present.theme import THEMES, Theme
from gpulse.screen.grid import Grid
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels.details import LEGEND, box, paint_help
from gpulse.surfaces.top.panels.menus import Menu, change_setting, menu_of, setting_hint, setting_lines, shown_from
from gpulse.surfaces.top.state import CHARTS, COLUMNS, INTERVALS, ScreenSettings, State, column_title

_TABLE = [
    ("F1 ?", "show this help"),
    ("Up Down", "move the cursor"),
    ("PgUp PgDn", "a page of processes up or down"),
    ("/", "show only processes that contain a word"),
    ("Supercalifragilistic", "a word that is longer than the narrowest screen is wide"),
    *((f"Ctrl-{letter}", f"does the thing called {letter}") for letter in "abcdefghij"),
    ("q", "quit"),
]
_DIALOGS: dict[str, Callable[[Grid, Area, State], None]] = {
    "help": lambda grid, area, state: paint_help(grid, area, state, _TABLE),
    "settings": lambda grid, area, state: _menu("settings", state).paint(grid, area, state.theme),
    "sort": lambda grid, area, state: _menu("sort", state).paint(grid, area, state.theme),
}


def _menu(name: str, state: State) -> Menu:
    state.dialog = name
    return menu_of(state)


def _last(columns: int, rows: int) -> int:
    """Return the largest first line of the help that a key can reach."""
    state = _state(9999)
    paint_help(Grid(columns, rows), Area(0, 0, rows, columns), state, _TABLE)
    return state.choice


def _state(choice: int = 0, theme: Theme | None = None) -> State:
    state = State(ScreenSettings(), History(()), theme)
    state.choice = choice
    return state


def _painted(name: str, columns: int, rows: int, choice: int = 0, theme: Theme | None = None) -> Grid:
    grid = Grid(columns, rows)
    grid.fill(0, 0, rows, columns, "track", "x")
    state = _state(choice, theme)
    state.columns, state.rows = columns, rows
    _DIALOGS[name](grid, Area(0, 0, rows, columns), state)
    return grid


def _everything(name: str, columns: int, rows: int, steps: int) -> str:
    """Return all that can be seen of a dialog by scrolling through it, without its frame."""
    seen: dict[str, None] = {}
    for choice in range(steps):
        for line in _painted(name, columns, rows, choice).text()[1:-1]:
            seen.setdefault(line.strip("x").strip("│").strip())
    return " ".join(seen)


@given(
    name=st.sampled_from(sorted(_DIALOGS)),
    columns=st.integers(0, 130),
    rows=st.integers(0, 60),
    choice=st.integers(-5, 200),
    unicode=st.booleans(),
)
@example(name="help", columns=20, rows=5, choice=0, unicode=True)
@example(name="settings", columns=20, rows=5, choice=11, unicode=False)
def test_any_screen_at_all(name: str, columns: int, rows: int, choice: int, unicode: bool) -> None:
    grid = _painted(name, columns, rows, choice, Theme(0, unicode))
    assert [len(row) for row in grid.chars] == [columns] * rows
    if not unicode:
        assert all(line.isascii() and "\\" not in line for line in grid.text())


@given(
    name=st.sampled_from(sorted(_DIALOGS)),
    row=st.integers(0, 9),
    column=st.integers(0, 9),
    rows=st.integers(5, 30),
    columns=st.integers(20, 100),
    choice=st.integers(0, 80),
)
def test_nothing_outside_its_area_is_touched(
    name: str, row: int, column: int, rows: int, columns: int, choice: int
) -> None:
    grid = Grid(120, 50)
    grid.fill(0, 0, 50, 120, "track", "x")
    area = Area(row, column, rows, columns)
    _DIALOGS[name](grid, area, _state(choice))
    cells = [(at, cell) for at in range(50) for cell in range(120)]
    touched = [at for at in cells if grid.styles[at[0]][at[1]] != "track" or grid.chars[at[0]][at[1]] != "x"]
    assert touched
    assert all(area.holds(*at) for at in touched)
    # A box: nothing of what was under it shows through.
    top, bottom = min(touched)[0], max(touched)[0]
    left, right = min(at[1] for at in touched), max(at[1] for at in touched)
    assert len(touched) == (bottom - top + 1) * (right - left + 1)


class TestFrame:
    def test_a_box_with_its_title_in_the_middle(self) -> None:
        grid = Grid(16, 5)
        inside = box(grid, Area(0, 0, 5, 16), Theme(), "Title", 1, 8, "1/2")
        assert grid.text() == ["", "  ╭─ Title ──╮", "  │          │", "  ╰──── 1/2 ─╯", ""]
        assert (inside.row, inside.column, inside.rows, inside.columns) == (2, 4, 1, 8)

    def test_in_ascii_without_unicode(self) -> None:
        grid = Grid(12, 3)
        box(grid, Area(0, 0, 3, 12), Theme(0, False), "Long title", 9, 90)
        assert grid.text() == ["+- Long ~ -+", "|          |", "+----------+"]

    @given(choice=st.integers(0, 50), count=st.integers(1, 50), rows=st.integers(1, 50))
    def test_the_chosen_line_is_always_shown_and_no_row_is_wasted(self, choice: int, count: int, rows: int) -> None:
        choice = min(choice, count - 1)
        first = shown_from(choice, count, rows)
        assert first <= choice < first + rows
        assert first == 0 or first + rows <= count


class TestHelp:
    @pytest.mark.parametrize(("columns", "rows"), [(20, 5), (34, 7), (80, 24), (120, 40)])
    def test_all_of_it_can_be_read(self, columns: int, rows: int) -> None:
        words = _everything("help", columns, rows, _last(columns, rows) + 1).replace(" ", "")
        for keys, what in _TABLE:
            assert keys[:14].replace(" ", "") in words
            assert all(word in words for word in what.split())

    def test_two_columns_where_one_does_not_fit_and_there_is_room(self) -> None:
        sizes = ((170, 12), (120, 14), (70, 12), (170, 40))
        full, wrapped, narrow, tall = (_painted("help", *size).text() for size in sizes)
        for two in (full, wrapped):
            assert any("show this help" in line and "called d" in line for line in two)
            assert any("quit" in line for line in two)
        assert not any("show this help" in line and "called d" in line for line in narrow + tall)
        assert any("screen is wide" in line for line in full)
        assert _last(170, 40) == 0
        assert _last(70, 12) > 0

    def test_scrolling_ends_at_the_end(self) -> None:
        last, meaning = _last(70, 6), LEGEND[-1][-1][:20]
        end = _painted("help", 70, 6, last).text()
        assert any(meaning in line for line in end)
        assert not any(meaning in line for line in _painted("help", 70, 6, last - 1).text())
        assert _painted("help", 70, 6, last + 50).text() == end
        assert f" {last + 1}-{last + 4}/{last + 4} " in end[-1]

    def test_up_after_the_end_moves_at_once(self) -> None:
        state = _state(9999)
        for step in (0, -1):
            state.choice += step
            paint_help(Grid(70, 6), Area(0, 0, 6, 70), state, _TABLE)
        assert state.choice == _last(70, 6) - 1

    def test_no_keys_at_all(self) -> None:
        grid = Grid(70, 40)
        paint_help(grid, Area(0, 0, 40, 70), _state(), [])
        assert any(grid.text())


def _line(label: str) -> int:
    return [name for name, _ in setting_lines(ScreenSettings())].index(label)


class TestSettings:
    @pytest.mark.parametrize(("columns", "rows"), [(20, 5), (80, 24)])
    def test_the_chosen_line_is_highlighted_and_no_other(self, columns: int, rows: int) -> None:
        shown = set()
        for choice, (label, value) in enumerate(setting_lines(ScreenSettings(), short=columns < 40)):
            grid = _painted("settings", columns, rows, choice)
            (row,) = {at for at in range(rows) if "selected" in grid.styles[at]}
            line = grid.text()[row]
            assert label[-4:] in line
            assert value in line
            shown.add(line)
        assert len(shown) == len(setting_lines(ScreenSettings()))  # each can be told from all others

    @given(choice=st.integers(-3, 90), step=st.integers(-2, 2))
    def test_a_change_keeps_the_settings_good(self, choice: int, step: int) -> None:
        chosen = ScreenSettings()
        for _ in range(3):
            change_setting(chosen, choice, step)
            assert ScreenSettings.load(chosen.values())[1] == []
        changes = step != 0 and 0 <= choice < len(setting_lines(chosen))
        usual = ScreenSettings()
        assert ((chosen.values(), chosen.theme) != (usual.values(), usual.theme)) == changes

    @pytest.mark.parametrize(
        ("start", "step", "expected"),
        [
            (1.0, 1, 2.0),
            (1.0, -1, 0.5),
            (10.0, 1, 0.2),
            (0.2, -1, 10.0),
            (3.0, 1, 5.0),
            (3.0, -1, 2.0),
            (60.0, -1, 10.0),
        ],
    )
    def test_intervals_go_round(self, start: float, step: int, expected: float) -> None:
        chosen = ScreenSettings()
        chosen.interval = start
        change_setting(chosen, _line("Interval"), step)
        assert chosen.interval == expected
        assert expected in INTERVALS

    def test_themes_go_round_both_ways(self) -> None:
        chosen = ScreenSettings()
        seen = []
        for _ in THEMES:
            seen.append(chosen.theme)
            change_setting(chosen, _line("Theme"), 1)
        assert tuple(seen) == THEMES
        change_setting(chosen, _line("Theme"), -1)
        assert chosen.theme == THEMES[-1]

    @pytest.mark.parametrize(
        ("label", "name"),
        [("Largest first", "falling"), ("Fahrenheit", "fahrenheit"), ("Sizes in MB, not MiB", "decimal")],
    )
    def test_flags_flip(self, label: str, name: str) -> None:
        chosen = ScreenSettings()
        before = getattr(chosen, name)
        change_setting(chosen, _line(label), -1)
        assert getattr(chosen, name) is not before
        assert setting_lines(chosen)[_line(label)][1] == ("off" if before else "on")

    def test_a_column_comes_before_the_command_and_goes_again(self) -> None:
        chosen = ScreenSettings()
        change_setting(chosen, _line("Job"), 1)
        assert chosen.columns[-2:] == ["job", "command"]
        change_setting(chosen, _line("Job"), 1)
        assert chosen.columns == ScreenSettings().columns

    def test_the_last_column_and_chart_stay_but_every_panel_may_go(self) -> None:
        chosen = ScreenSettings()
        for at in range(len(setting_lines(chosen))):
            if setting_lines(chosen)[at][1] == "on":
                change_setting(chosen, at, 1)
        assert (len(chosen.columns), len(chosen.charts), chosen.panels) == (1, 1, [])

    def test_panels_come_back_in_their_order(self) -> None:
        chosen = ScreenSettings()
        change_setting(chosen, _line("Host panel"), 1)
        assert chosen.panels == ["charts", "processes"]
        change_setting(chosen, _line("Host panel"), 1)
        assert chosen.panels == ["host", "charts", "processes"]

    def test_every_column_and_chart_metric_has_its_line(self) -> None:
        labels = [label for label, _ in setting_lines(ScreenSettings())]
        assert all(labels.count(column_title(column)) == 1 for column in COLUMNS)
        assert all(labels.count(GPU_METRICS[chart].title) == 1 for chart in CHARTS)
        assert len(set(labels)) == len(labels)

    def test_groups_and_hints(self) -> None:
        text = "\n".join(_painted("settings", 80, 50, 1).text())
        assert "Screen" in text
        assert "Process columns" in text
        assert "Color theme of all commands" in text
        for choice in range(len(setting_lines(ScreenSettings()))):
            assert setting_hint(choice).endswith(".")

    def test_the_box_does_not_move_with_the_cursor(self) -> None:
        edges = {
            _painted("settings", 80, 24, choice).text()[0] for choice in range(len(setting_lines(ScreenSettings())))
        }
        assert len(edges) == 1


class TestSortMenu:
    def test_every_column_is_there_and_the_current_one_is_marked(self) -> None:
        state = _state()
        state.sort, state.falling = "user", True
        lines = _menu("sort", state).lines
        assert [label for label, _ in lines] == [column_title(column) for column in COLUMNS]
        assert [COLUMNS[at] for at, (_, mark) in enumerate(lines) if mark.strip()] == ["user"]

    @pytest.mark.parametrize(
        ("falling", "unicode", "mark"), [(True, True, "▼"), (False, True, "▲"), (True, False, "v"), (False, False, "^")]
    )
    def test_the_mark_says_which_way(self, falling: bool, unicode: bool, mark: str) -> None:
        state = _state(theme=Theme(0, unicode))
        state.sort, state.falling = "pid", falling
        grid = Grid(40, 30)
        _menu("sort", state).paint(grid, Area(0, 0, 30, 40), state.theme)
        (line,) = [line for line in grid.text() if line.rstrip(" │|").endswith(mark)]
        assert "PID" in line

    def test_on_a_small_screen_the_choice_is_shown_with_its_place(self) -> None:
        for choice in range(len(COLUMNS)):
            grid = _painted("sort", 20, 5, choice)
            assert sum("selected" in styles for styles in grid.styles) == 1
            assert f" {choice + 1}/{len(COLUMNS)} " in grid.text()[-1]
