"""The screen in memory: cut at its edges, harmless, and whole characters only."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpulse.present.line import Line
from gpulse.present.text import width
from gpulse.screen.grid import WIDE_REST, Grid, mend

TEXTS = st.text(max_size=16) | st.text(st.sampled_from("ab漢한🚀e\u0301\x1b\n\u202e"), max_size=16)
PLACES = st.integers(-20, 30)


def check_whole(grid: Grid) -> None:
    """Every row has its columns, and a cell holds one character of one cell, or one of two and its rest."""
    assert [len(row) for row in grid.chars] == [grid.columns] * grid.rows
    assert [len(row) for row in grid.styles] == [grid.columns] * grid.rows
    for row in grid.chars:
        assert sum(width(char) for char in row) == grid.columns


class TestPut:
    def test_text_stands_where_it_was_put(self) -> None:
        grid = Grid(10, 2)
        assert grid.put(1, 3, "abc", "warn") == 6
        assert grid.text() == ["", "   abc"]
        assert grid.styles[1] == [""] * 3 + ["warn"] * 3 + [""] * 4

    def test_what_is_too_long_is_cut_at_the_edge_or_after_its_cells(self) -> None:
        grid = Grid(6, 1)
        assert grid.put(0, 3, "abcdef") == 6
        assert grid.put(0, 0, "xyz", "", 2) == 2
        assert grid.text() == ["xy abc"]

    def test_a_wide_character_takes_two_cells_and_is_never_halved(self) -> None:
        grid = Grid(5, 1)
        assert grid.put(0, 0, "漢字漢") == 4
        assert grid.chars[0] == ["漢", WIDE_REST, "字", WIDE_REST, " "]

    def test_a_combining_mark_stays_with_its_letter(self) -> None:
        grid = Grid(5, 1)
        assert grid.put(0, 0, "e\u0301x") == 2
        assert grid.chars[0][:2] == ["e\u0301", "x"]

    def test_a_mark_at_the_first_cell_is_left_out(self) -> None:
        grid = Grid(3, 1)
        assert grid.put(0, 0, "\u0301ab") == 2
        assert grid.text() == ["ab"]

    def test_control_characters_are_written_out(self) -> None:
        grid = Grid(20, 1)
        grid.put(0, 0, "a\x1b[31m\n\u202eb")
        assert grid.text() == ["a\\x1b[31m\\x0a\\u202eb"]

    def test_text_that_begins_left_of_the_screen_loses_that_part(self) -> None:
        grid = Grid(5, 1)
        assert grid.put(0, -2, "abcd") == 2
        assert grid.text() == ["cd"]

    def test_outside_nothing_happens(self) -> None:
        grid = Grid(5, 2)
        assert grid.put(2, 0, "x") == 0
        assert grid.put(-1, 0, "x") == 0
        assert grid.put(0, 5, "x") == 5
        assert grid.text() == ["", ""]

    def test_a_line_keeps_the_styles_of_its_pieces_and_ends_after_its_cells(self) -> None:
        grid = Grid(10, 1)
        assert grid.line(0, 1, Line().add("ab", "warn").add("cdef", "good"), 4) == 5
        assert grid.text() == [" abcd"]
        assert grid.styles[0][:6] == ["", "warn", "warn", "good", "good", ""]


class TestFillAndRestyle:
    def test_a_rectangle_is_cut_at_the_edges(self) -> None:
        grid = Grid(4, 3)
        grid.fill(-1, 2, 3, 9, "warn", "x")
        assert grid.text() == ["  xx", "  xx", ""]
        assert grid.styles[0] == ["", "", "warn", "warn"]

    def test_a_style_changes_and_the_text_stays(self) -> None:
        grid = Grid(4, 1)
        grid.put(0, 0, "abcd", "good")
        grid.restyle(0, 1, 2, "warn")
        assert grid.text() == ["abcd"]
        assert grid.styles[0] == ["good", "warn", "warn", "good"]

    def test_a_style_of_cells_that_are_not_there_changes_nothing(self) -> None:
        grid = Grid(4, 1)
        for column, columns in ((-3, 2), (-1, 0), (2, -1), (9, 3)):
            grid.restyle(0, column, columns, "warn")
        assert grid.styles == [[""] * 4]


class TestMending:
    def test_the_half_of_a_wide_character_becomes_a_blank(self) -> None:
        grid = Grid(6, 1)
        grid.put(0, 0, "漢字x")
        grid.put(0, 1, "ab")
        mend(grid)
        assert grid.chars[0] == [" ", "a", "b", " ", "x", " "]

    def test_a_whole_one_stays(self) -> None:
        grid = Grid(4, 1)
        grid.put(0, 1, "漢")
        mend(grid)
        assert grid.chars[0] == [" ", "漢", WIDE_REST, " "]


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    put = st.tuples(st.just("put"), PLACES, PLACES, TEXTS, st.just("warn"), st.none() | st.integers(-3, 20))
    fill = st.tuples(st.just("fill"), PLACES, PLACES, PLACES, PLACES, st.just("good"))
    restyle = st.tuples(st.just("restyle"), PLACES, PLACES, PLACES, st.just("label"))
    return draw(st.lists(put | fill | restyle, max_size=8))


@given(st.integers(0, 20), st.integers(0, 6), changes())
def test_whatever_is_drawn_the_screen_stays_whole_and_harmless(
    columns: int, rows: int, drawn: list[tuple[Any, ...]]
) -> None:
    grid = Grid(columns, rows)
    for name, *arguments in drawn:
        getattr(grid, name)(*arguments)
    mend(grid)
    check_whole(grid)
    assert all(char.isprintable() for row in grid.chars for cell in row for char in cell)
