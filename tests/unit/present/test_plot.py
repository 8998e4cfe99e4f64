"""Plots: the shape asked for, holes where nothing is known, and nothing that happened left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gpulse.present.plot import SHADE, ascii_spans, braille_spans, mini, spans
from gpulse.screen.grid import Grid, draw

_VALUES = st.lists(st.floats(), max_size=300)
_NAN = float("nan")


def braille(values: Sequence[float], columns: int, rows: int, low: float, high: float) -> list[str]:
    return braille_spans(spans(values, columns * 2), rows, low, high)


def ascii_plot(values: Sequence[float], columns: int, rows: int, low: float, high: float) -> list[str]:
    return ascii_spans(spans(values, columns), rows, low, high)


_DOTS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))  # from the bottom up, left and right


def _top(rows: list[str], column: int) -> int:
    """Return the highest dot of a dot column, counted from 1; 0 is none."""
    for row, text in enumerate(rows):
        mask = ord(text[column // 2]) - 0x2800 if text[column // 2] != " " else 0
        for dot in (3, 2, 1, 0):
            if mask & _DOTS[dot][column % 2]:
                return (len(rows) - 1 - row) * 4 + dot + 1
    return 0


class TestShape:
    @given(_VALUES, st.integers(0, 60), st.integers(0, 20), st.floats(), st.floats())
    def test_any_values_on_any_scale(
        self, values: list[float], columns: int, rows: int, low: float, high: float
    ) -> None:
        for made in (braille(values, columns, rows, low, high), ascii_plot(values, columns, rows, low, high)):
            assert [len(row) for row in made] == [columns] * rows
        assert all(row.isascii() for row in ascii_plot(values, columns, rows, low, high))

    def test_nothing_is_blank(self) -> None:
        assert braille([], 3, 2, 0, 100) == ["   ", "   "]
        assert braille([_NAN] * 9, 3, 2, 0, 100) == ["   ", "   "]
        assert ascii_plot([], 3, 1, 0, 100) == ["   "]

    def test_zero_is_not_nothing(self) -> None:
        assert braille([0.0] * 4, 2, 1, 0, 100) == ["⣀⣀"]
        assert ascii_plot([0.0, _NAN], 2, 2, 0, 100) == ["  ", "_ "]

    def test_a_hole_stays_one(self) -> None:
        assert braille([100.0, 100.0, _NAN, _NAN, 100.0, 100.0], 3, 1, 0, 100)[0][1] == " "

    def test_one_value_fills_the_width(self) -> None:
        assert braille([100.0], 3, 1, 0, 100) == ["⠋⠋⠋"]

    def test_shade_lies_below_the_curve(self) -> None:
        assert braille([100.0] * 4, 2, 3, 0, 100)[1:] == [SHADE * 2] * 2


class TestNothingIsLost:
    @given(st.lists(st.floats(0, 100), min_size=1, max_size=400), st.integers(1, 40), st.integers(1, 12))
    def test_the_highest_value_is_seen(self, values: list[float], columns: int, rows: int) -> None:
        if len(values) < columns * 2:
            values = values * (columns * 2)
        made = braille(values, columns, rows, 0, 100)
        highest = max(_top(made, column) for column in range(columns * 2))
        assert highest == 1 + round(max(values) / 100 * (rows * 4 - 1))

    def test_a_spike_and_a_dip_among_many(self) -> None:
        values = [50.0] * 1000
        values[300], values[700] = 100.0, 0.0
        made = braille(values, 10, 5, 0, 100)
        assert made[0].strip()
        assert made[-1] != SHADE * 10
        assert "#" in ascii_plot(values, 10, 5, 0, 100)[0]


class TestMini:
    def test_levels(self) -> None:
        assert [mini(share) for share in (0.0, 0.5, 1.0, None)] == ["▁", "▄", "█", "·"]
        assert [mini(share, False) for share in (0.0, 0.55, 1.0, None)] == ["0", "5", "9", "."]

    @given(st.floats())
    def test_one_character_for_any_share(self, share: float) -> None:
        assert len(mini(share)) == len(mini(share, False)) == 1


class TestDraw:
    @given(st.integers(-3, 12), st.integers(-3, 5), st.text("ab·", max_size=15))
    def test_rows_keep_their_length(self, column: int, row: int, text: str) -> None:
        grid = Grid(8, 3)
        end = draw(grid, row, column, text, "good")
        assert all(len(chars) == 8 for chars in grid.chars)
        assert all(len(styles) == 8 for styles in grid.styles)
        assert end >= column
        assert not math.isnan(end)
