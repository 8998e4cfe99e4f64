"""Plots as text: an area in braille dots or in ASCII, with spikes and dips kept where samples share a column."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import zip_longest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Span: TypeAlias = tuple[float, float] | None  # lowest and highest of one column; None is a hole

_LEFT = (0x40, 0x04, 0x02, 0x01)  # dots of a cell's left half from the bottom up
_RIGHT = (0x80, 0x20, 0x10, 0x08)
SHADE, ASCII_SHADE = "\u2802", "."  # a cell of nothing but the shade under a curve
_MINI = " ▁▂▃▄▅▆▇█"


def spans(values: Sequence[float], count: int) -> list[Span]:
    """Return lowest and highest for each of `count` columns; fewer values than columns are drawn wider."""
    total = len(values)
    if not total:
        return [None] * count
    found: list[Span] = []
    for at in range(count):
        start = at * total // count
        part = [value for value in values[start : max(start + 1, (at + 1) * total // count)] if value == value]
        found.append((min(part), max(part)) if part else None)
    return found


def braille_spans(columns: Sequence[Span], rows: int, low: float, high: float) -> list[str]:
    """Return the rows of `braille_cells` as text."""
    return ["".join(row) for row in braille_cells(columns, rows, low, high)]


def braille_cells(columns: Sequence[Span], rows: int, low: float, high: float) -> list[tuple[str, ...]]:
    """Return an area plot of columns of dots, two by four dots a cell, the top row first; cells of nothing but shade are `SHADE`.

    A stroke in each column from its lowest to its highest value, joined to the one before, light shade below. None leaves a hole;
    a value at `low` still has a dot, so that nothing and zero differ.
    """
    if rows <= 0:
        return []
    cells = []
    before: Span = None
    for left, right in zip_longest(columns[::2], columns[1::2]):
        cells.append(_pair(before, left, right, rows, low, high))
        before = right
    return list(zip(*cells, strict=True)) if cells else [()] * rows


@lru_cache(maxsize=8192)  # a curve that moves by one column is made of the same cells
def _pair(before: Span, left: Span, right: Span, rows: int, low: float, high: float) -> tuple[str, ...]:
    """Return the cells of two columns of dots from the top down, joined to the column before them."""
    strokes = [_stroke(span, low, high, rows * 4) for span in (before, left, right)]
    return _cell(_joined(strokes[1], strokes[0]), _joined(strokes[2], strokes[1]), rows)


def _stroke(span: Span, low: float, high: float, dots: int) -> tuple[int, int] | None:
    """Return the lowest and the highest dot of a column."""
    if span is None:
        return None
    bottom = _height(span[0], low, high, dots) - 1
    return bottom, bottom if span[1] == span[0] else _height(span[1], low, high, dots) - 1


def _cell(left: tuple[int, int] | None, right: tuple[int, int] | None, rows: int) -> tuple[str, ...]:
    """Return one column of cells from the top down: blank, then the strokes of both halves, then shade."""
    if left is None and right is None:
        return (" ",) * rows
    ends = [stroke for stroke in (left, right) if stroke is not None]
    lowest, highest = min(first for first, _ in ends) >> 2, max(last for _, last in ends) >> 2
    middle = []
    for row in range(highest, lowest - 1, -1):
        mask, base = 0, row * 4
        if left is not None:
            mask = _dots(_LEFT, left, base) | (_LEFT[2] if base + 2 < left[0] else 0)
        if right is not None:
            mask |= _dots(_RIGHT, right, base)
        middle.append(chr(0x2800 + mask) if mask else " ")
    return (*" " * (rows - 1 - highest), *middle, *[" " if left is None else SHADE] * lowest)


def _dots(bits: tuple[int, ...], stroke: tuple[int, int], base: int) -> int:
    """Return the dots of a stroke that lie in the cell that begins at dot `base`."""
    return sum(bits[max(0, stroke[0] - base) : max(0, stroke[1] - base + 1)])


def ascii_spans(columns: Sequence[Span], rows: int, low: float, high: float) -> list[str]:
    """Return the same plot in ASCII, one column a cell: # from the lowest to the highest value, full stops below."""
    if rows <= 0:
        return []
    cells = [[" "] * len(columns) for _ in range(rows)]
    for at, span in enumerate(columns):
        if span is None:
            continue
        bottom, top = _height(span[0], low, high, rows) - 1, _height(span[1], low, high, rows) - 1
        for row in range(top + 1):
            cells[rows - 1 - row][at] = "#" if row >= bottom else ASCII_SHADE
        if span[1] <= low:
            cells[rows - 1][at] = "_"  # there, but nothing
    return ["".join(row) for row in cells]


def _joined(stroke: tuple[int, int] | None, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return a stroke made long enough to meet the one before it."""
    if stroke is None or before is None or stroke == before:
        return stroke
    return min(stroke[0], before[1] + 1), max(stroke[1], before[0] - 1)


def mini(share: float | None, unicode: bool = True) -> str:
    """Return one character for a share of 0 to 1: a block, or a digit in tenths; a dot where nothing is known."""
    if share is None or share != share:
        return "·" if unicode else "."
    part = min(1.0, max(0.0, share))
    return _MINI[max(1, math.ceil(part * 8 - 0.5))] if unicode else str(min(9, int(part * 10)))


def _height(value: float, low: float, high: float, dots: int) -> int:
    """Return how many dots high a value stands: at least one, at most all."""
    if value >= high > low:
        return dots
    if not low < value < high:
        return 1
    part = (value - low) / (high - low)
    return 1 + round(part * (dots - 1)) if part == part else 1  # a scale without end has no places
