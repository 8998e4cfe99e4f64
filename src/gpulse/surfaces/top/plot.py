"""Plots as text: an area in braille dots or in ASCII, with spikes and dips kept where samples share a column."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from .grid import Grid

    Span: TypeAlias = tuple[float, float] | None  # lowest and highest of one column; None is a hole

_LEFT = (0x40, 0x04, 0x02, 0x01)  # dots of a cell's left half from the bottom up
_RIGHT = (0x80, 0x20, 0x10, 0x08)
_MINI = " ▁▂▃▄▅▆▇█"


def braille(values: Sequence[float], columns: int, rows: int, low: float, high: float) -> list[str]:
    """Return an area plot of evenly spaced values, two by four dots a cell, the top row first.

    Solid up to the lowest value of a dot column, every second dot from there to the highest. NaN leaves a hole; a value
    at `low` still has a dot, so that nothing and zero differ.
    """
    return braille_spans(spans(values, columns * 2), rows, low, high)


def ascii_plot(values: Sequence[float], columns: int, rows: int, low: float, high: float) -> list[str]:
    """Return the same plot in ASCII: # up to the lowest value of a column, : from there to the highest."""
    return ascii_spans(spans(values, columns), rows, low, high)


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
    """Return the braille plot of ready columns, two of them a cell."""
    if rows <= 0:
        return []
    dots, cells = rows * 4, (len(columns) + 1) // 2
    masks = [[0] * cells for _ in range(rows)]
    for at, span in enumerate(columns):
        if span is None:
            continue
        bits = _RIGHT if at & 1 else _LEFT
        whole = bits[0] | bits[1] | bits[2] | bits[3]
        cell = at >> 1
        solid, top = _height(span[0], low, high, dots), _height(span[1], low, high, dots)
        full, rest = divmod(solid, 4)
        for row in range(full):
            masks[rows - 1 - row][cell] |= whole
        for dot in range(rest):
            masks[rows - 1 - full][cell] |= bits[dot]
        for dot in range(top - 1, solid - 1, -2):
            masks[rows - 1 - (dot >> 2)][cell] |= bits[dot & 3]
    return ["".join([chr(0x2800 + mask) if mask else " " for mask in row]) for row in masks]


def ascii_spans(columns: Sequence[Span], rows: int, low: float, high: float) -> list[str]:
    """Return the ASCII plot of ready columns, one a cell."""
    if rows <= 0:
        return []
    cells = [[" "] * len(columns) for _ in range(rows)]
    for at, span in enumerate(columns):
        if span is None:
            continue
        solid, top = _height(span[0], low, high, rows), _height(span[1], low, high, rows)
        for row in range(top):
            cells[rows - 1 - row][at] = "#" if row < solid else ":"
        if span[1] <= low:
            cells[rows - 1][at] = "_"  # there, but nothing
    return ["".join(row) for row in cells]


def mini(share: float | None, unicode: bool = True) -> str:
    """Return one character for a share of 0 to 1: a block, or a digit in tenths; a dot where nothing is known."""
    if share is None or share != share:
        return "·" if unicode else "."
    part = min(1.0, max(0.0, share))
    return _MINI[max(1, math.ceil(part * 8 - 0.5))] if unicode else str(min(9, int(part * 10)))


def draw(grid: Grid, row: int, column: int, text: str, style: str = "") -> int:
    """Write our own text, every character of which takes one cell, and return the column after it.

    Several times faster than `Grid.put`, which looks at each character; never for text that comes from outside.
    """
    if not 0 <= row < grid.rows or column < 0 or column >= grid.columns:
        return column
    end = min(grid.columns, column + len(text))
    grid.chars[row][column:end] = text if end - column == len(text) else text[: end - column]
    grid.styles[row][column:end] = [style] * (end - column)
    return end


def _height(value: float, low: float, high: float, dots: int) -> int:
    """Return how many dots high a value stands: at least one, at most all."""
    if high <= low or value != value:
        return 1
    part = (min(high, max(low, value)) - low) / (high - low)
    return 1 + round(part * (dots - 1)) if part == part else 1
