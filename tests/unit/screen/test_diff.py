"""What is sent to the terminal makes it show exactly the screen in memory, and is nothing when nothing changed."""

from __future__ import annotations

import random
from operator import attrgetter
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.present.theme import THEMES, TRUE_COLOR, Theme
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.screen.grid import WIDE_REST, Grid, difference, mend
from gpulse.screen.tty import KeyEvent
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.top.actions import BY_KEY
from gpulse.surfaces.top.app import App, paint
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State

pyte = pytest.importorskip("pyte")

STYLES = ("", "title", "label", "warn", "critical", "selected", "chart1", "loud")
TEXTS = st.text(st.sampled_from("ab 1#─█⠿é漢字한🚀אبe\u0301\u0308"), max_size=12)
COLORS = (0, 16, 256, TRUE_COLOR)
LOOK = attrgetter("fg", "bg", "bold", "reverse", "underscore", "blink")


class Display:
    """A terminal as the screen sets it up: no wrapping at the edge."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self._stream.feed("\x1b[?7l")

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)

    def sample(self, row: int, column: int) -> tuple[Any, ...]:
        return LOOK(self.screen.buffer[row][column])

    def cells(self, grid: Grid) -> list[list[Any]]:
        return [list(map(self.screen.buffer[row].__getitem__, range(grid.columns))) for row in range(grid.rows)]


def samples_of(theme: Theme, styles: set[str]) -> dict[str, tuple[Any, ...]]:
    """What each style looks like on this terminal, found out one by one."""
    found = {}
    for style in styles:
        display = Display(1, 1)
        display.feed(theme.switch(style) + "x")
        found[style] = display.sample(0, 0)
    return found


def check_same(display: Display, grid: Grid, theme: Theme) -> None:
    cells = display.cells(grid)
    shown = [[cell.data for cell in row] for row in cells]
    assert shown == [[char if char.isascii() else normalize("NFC", char) for char in row] for row in grid.chars]
    samples = samples_of(theme, {style for row in grid.styles for style in row})
    wrong = [
        (row, column)
        for row, (looks, styles, chars) in enumerate(zip(cells, grid.styles, grid.chars, strict=True))
        for column, (cell, style, char) in enumerate(zip(looks, styles, chars, strict=True))
        if LOOK(cell) != samples[style] and char != WIDE_REST
    ]
    assert wrong == []


def copy(grid: Grid) -> Grid:
    same = Grid(grid.columns, grid.rows)
    same.chars = [list(row) for row in grid.chars]
    same.styles = [list(row) for row in grid.styles]
    return same


_PLACE = st.integers(-3, 22), st.integers(-3, 42)
_STYLE = st.sampled_from(STYLES)
_PUT = st.tuples(st.just("put"), *_PLACE, TEXTS, _STYLE, st.none() | st.integers(0, 12))
_FILL = st.tuples(st.just("fill"), *_PLACE, st.integers(0, 4), st.integers(0, 12), _STYLE, st.sampled_from(" ─x"))
_RESTYLE = st.tuples(st.just("restyle"), *_PLACE, st.integers(0, 12), _STYLE)
EDITS = st.lists(st.one_of(_PUT, _PUT, _FILL, _RESTYLE), max_size=8)


def apply(grid: Grid, changes: list[tuple[Any, ...]]) -> None:
    for name, *arguments in changes:
        getattr(grid, name)(*arguments)
    mend(grid)


class TestAnyScreens:
    @given(
        st.lists(
            st.tuples(EDITS, st.booleans(), st.none() | st.tuples(st.integers(1, 40), st.integers(1, 20))), max_size=6
        ),
        st.sampled_from(COLORS),
        st.sampled_from(THEMES),
    )
    @settings(max_examples=100, deadline=None)
    def test_one_after_another_they_show_as_they_are(
        self, steps: list[tuple[list[tuple[Any, ...]], bool, tuple[int, int] | None]], colors: int, name: str
    ) -> None:
        theme = Theme(colors, True, name)
        display = Display(30, 8)
        before, grid = None, Grid(30, 8)
        for changes, anew, size in steps:
            if size is not None:
                display.resize(*size)
                grid = Grid(*size)
            else:
                grid = Grid(grid.columns, grid.rows) if anew else copy(grid)
            apply(grid, changes)
            display.feed(difference(before, grid, theme))
            check_same(display, grid, theme)
            before = grid

    @given(EDITS)
    def test_the_same_one_again_sends_nothing(self, changes: list[tuple[Any, ...]]) -> None:
        grid = Grid(30, 8)
        apply(grid, changes)
        assert difference(grid, copy(grid), Theme(256)) == ""

    @given(EDITS)
    def test_the_style_is_put_back_at_the_end(self, changes: list[tuple[Any, ...]]) -> None:
        grid = Grid(30, 8)
        apply(grid, changes)
        display = Display(30, 8)
        display.feed(difference(None, grid, Theme(256)))
        attributes = display.screen.cursor.attrs
        assert (attributes.fg, attributes.bg, attributes.bold, attributes.reverse) == (
            "default",
            "default",
            False,
            False,
        )


class TestLittle:
    def test_one_changed_cell_sends_one_cell(self) -> None:
        before, after = Grid(80, 24), Grid(80, 24)
        after.put(5, 10, "x")
        text = difference(before, after, Theme(0))
        assert text == "\x1b[?2026h\x1b[6;11Hx\x1b[?2026l"

    def test_near_changes_are_one_jump_and_far_ones_two(self) -> None:
        near, far = Grid(80, 1), Grid(80, 1)
        for grid, second in ((near, 13), (far, 40)):
            grid.put(0, 10, "x")
            grid.put(0, second, "y")
        assert difference(Grid(80, 1), near, Theme(0)).count("H") == 1
        assert difference(Grid(80, 1), far, Theme(0)).count("H") == 2

    def test_another_size_clears_first(self) -> None:
        assert "\x1b[2J" in difference(Grid(10, 2), Grid(11, 2), Theme(0))
        assert "\x1b[2J" in difference(None, Grid(11, 2), Theme(0))

    def test_only_a_style_that_changed_is_sent_too(self) -> None:
        before = Grid(10, 1)
        before.put(0, 0, "abc")
        after = copy(before)
        after.restyle(0, 0, 3, "warn")
        assert "abc" in difference(before, after, Theme(256))


KEYS = (*BY_KEY, "a", "ä", "漢", "x", "backspace", "left", "right", "insert", "f12", "1")


class _Quiet(App):
    """The app without a terminal: what `run` does in a loop, step by step."""

    def sample(self, snapshot: Snapshot) -> None:
        self._take(snapshot)

    def take(self, event: KeyEvent) -> None:
        self._input.handle(event)
        self._input.over = False

    def frame(self) -> Grid:
        self._show()
        return paint(self._state, self._facts)


def _killer(*ignored: object) -> list[str]:
    return ["sent nothing: this is a test"]


WALKS = [(40, 10, seed) for seed in range(6)] + [(80, 24, seed) for seed in range(6)] + [(200, 60, 0), (200, 60, 1)]


@pytest.mark.parametrize(("columns", "rows", "seed"), WALKS)
def test_any_keys_and_clicks_are_drawn_as_they_should(
    seed: int, columns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpulse.surfaces.top.signals.send", _killer)
    chance = random.Random(seed)
    clock = ManualClock(1_700_000_000.0)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
    preferences = ScreenSettings()
    state = State(preferences, History(preferences.charts), Theme(256, seed % 2 == 0))
    state.columns, state.rows = columns, rows
    app = _Quiet(sampler, state)
    app.sample(sampler.read())
    display, before = Display(columns, rows), None
    done: list[KeyEvent] = []
    for step in range(120):
        if step % 5 == 0:
            clock.sleep(1.0)
            app.sample(sampler.read())
        if chance.random() < 0.7:
            event = KeyEvent(chance.choice(KEYS))
        else:
            kind = chance.choice(("press", "press", "release", "drag", "wheelup", "wheeldown"))
            event = KeyEvent(mouse=kind, column=chance.randrange(columns), row=chance.randrange(rows))
        done.append(event)
        if step % 40 == 39:
            state.columns, state.rows = chance.choice(((columns, rows), (columns + 7, rows + 3), (33, 9)))
            display.resize(state.columns, state.rows)
            before = None
        try:
            colors = state.theme.name
            app.take(event)
            grid = app.frame()
            before = before if state.theme.name == colors else None  # the app draws all anew, too
            display.feed(difference(before, grid, state.theme))
            if step % 4 == 0:
                check_same(display, grid, state.theme)
        except Exception as error:  # the keys that led there are what one needs
            raise AssertionError(f"{type(error).__name__}: {error}, after {done}") from error
        before = grid
    check_same(display, grid, state.theme)
