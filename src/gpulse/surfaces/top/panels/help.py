"""The help dialog: keys and their actions in one or two columns, scrollable."""

from __future__ import annotations

from ....present.text import fit, pad, width
from .frame import box

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ....present.theme import Theme
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State

    Table: TypeAlias = Sequence[tuple[str, str]]
    Pieces: TypeAlias = list[tuple[str, str]]
    Legend: TypeAlias = Sequence[tuple[str, str, str, str]]

_TITLE = "Help"
_BETWEEN = 3  # cells between two columns
_ENOUGH = 30  # minimum cells for descriptions to use a second column
_NARROW = 16  # with less space than this next to the keys, descriptions go below them


def paint(grid: Grid, area: Area, state: State, table: Table, legend: Legend = ()) -> None:
    """Draw the keys and their actions, then the legend; `state.choice` is the first line to show if they do not all fit."""
    lines, columns = _laid_out(area, state.theme, table, legend)
    rows = max(1, area.rows - 2)
    first = max(0, min(state.choice, len(lines) - rows))
    foot = f"{first + 1}-{min(first + rows, len(lines))}/{len(lines)}" if len(lines) > rows else ""
    inside = box(grid, area, state.theme, _TITLE, len(lines), columns, foot)
    for row, pieces in enumerate(lines[first : first + inside.rows]):
        column, end = inside.column, inside.column + inside.columns
        for text, style in pieces:
            column = grid.put(inside.row + row, column, text, style, max(0, end - column))


def last(area: Area, theme: Theme, table: Table) -> int:
    """Return the largest useful `state.choice`; 0 if everything fits."""
    return max(0, len(_laid_out(area, theme, table)[0]) - max(1, area.rows - 2))


def _laid_out(area: Area, theme: Theme, table: Table, legend: Legend = ()) -> tuple[list[Pieces], int]:
    """Return the lines of the help, and the width of the widest."""
    table = [(theme.spelled(keys), theme.spelled(what)) for keys, what in table]
    room = max(1, area.columns - 4)
    keys = max((width(keys) for keys, _ in table), default=0)
    whats = max((width(what) for _, what in table), default=0)
    one = _column(table, keys, min(room, keys + 2 + whats), theme)
    half = min((room - _BETWEEN) // 2, keys + 2 + whats)
    if len(one) <= area.rows - 2 or half < keys + 2 + min(_ENOUGH, whats):
        cells = min(room, keys + 2 + whats)
        return one + _legend(theme, legend, keys, cells), cells
    middle = (len(table) + 1) // 2
    left, right = (_column(part, keys, half, theme) for part in (table[:middle], table[middle:]))
    lines = [
        _filled(left[at] if at < len(left) else [], half + _BETWEEN) + (right[at] if at < len(right) else [])
        for at in range(max(len(left), len(right)))
    ]
    return lines + _legend(theme, legend, keys, half * 2 + _BETWEEN), half * 2 + _BETWEEN


def _legend(theme: Theme, legend: Legend, keys: int, cells: int) -> list[Pieces]:
    """Return the meaning of colors and marks as lines of the same columns."""
    lines: list[Pieces] = [[], [("Colors and marks", "title")]] if legend else []
    for mark, plain, style, what in legend:
        meaning = fit(what, max(0, cells - keys - 2), theme.more)
        lines.append([(pad(theme.glyph(mark, plain), keys + 2), style), (meaning, "calm")])
    return lines


def _column(table: Table, keys: int, cells: int, theme: Theme) -> list[Pieces]:
    """Return the lines of one column: descriptions next to the keys, or below them if there is little space."""
    lines: list[Pieces] = []
    beside = cells - keys - 2
    for name, what in table:
        if beside >= min(_NARROW, width(what)):
            first, *more = wrapped(what, beside)
            lines.append([(pad(name, keys + 2), "accent"), (first, "calm")])
            lines += [[(" " * (keys + 2), ""), (part, "calm")] for part in more]
        else:
            lines.append([(fit(name, cells, theme.more), "accent")])
            lines += [[(" ", ""), (part, "calm")] for part in wrapped(what, cells - 1)]
    return lines


def _filled(pieces: Pieces, cells: int) -> Pieces:
    return [*pieces, (" " * (cells - sum(width(text) for text, _ in pieces)), "")]


def wrapped(text: str, cells: int) -> list[str]:
    """Return text in lines of at most `cells`, broken at spaces, or within a word that is longer."""
    cells = max(2, cells)  # the widest character
    lines, line = [], ""
    for word in text.split():
        if line and width(line) + 1 + width(word) <= cells:
            line += f" {word}"
            continue
        if line:
            lines.append(line)
        line = word
        while width(line) > cells:
            part = fit(line, cells, "")
            lines.append(part)
            line = line[len(part) :]
    return [*lines, line] if line or not lines else lines
