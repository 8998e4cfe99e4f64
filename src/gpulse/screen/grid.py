"""A screen in memory: one character and one style per cell; a wide character is followed by an empty cell."""

from __future__ import annotations

from itertools import groupby
from operator import ne, or_

from ..present.text import clean, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..present.line import Line
    from ..present.theme import Theme

WIDE_REST = ""  # content of the second cell of a wide character


class Grid:
    """`columns` by `rows` cells, initially blank. Everything drawn is clipped at the edges and never raises."""

    __slots__ = ("chars", "columns", "rows", "styles", "wide")

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.wide = False  # whether a wide character was ever drawn
        self.chars = [[" "] * columns for _ in range(rows)]
        self.styles = [[""] * columns for _ in range(rows)]

    def put(self, row: int, column: int, text: str, style: str = "", cells: int | None = None) -> int:
        """Write text at a position, at most `cells` cells; return the column after it. Control characters are escaped."""
        end = self.columns if cells is None else min(self.columns, column + cells)
        if not 0 <= row < self.rows or column >= end:
            return column
        text = clean(text)
        if column < 0:
            text, column = text[-column:], 0
        if not text.isascii():
            return self._put_wide(row, column, text, style, end)
        text = text[: end - column]
        self.chars[row][column : column + len(text)] = text
        self.styles[row][column : column + len(text)] = [style] * len(text)
        return column + len(text)

    def line(self, row: int, column: int, line: Line, cells: int | None = None) -> int:
        """Write a laid-out line; return the column after it."""
        end = column + (self.columns if cells is None else cells)
        for text, style in line.pieces:
            column = self.put(row, column, text, style, end - column)
        return column

    def fill(self, row: int, column: int, rows: int, columns: int, style: str = "", char: str = " ") -> None:
        """Fill a rectangle with one character."""
        for at in range(max(0, row), min(self.rows, row + rows)):
            start, end = max(0, column), min(self.columns, column + columns)
            if start < end:
                self.chars[at][start:end] = char * (end - start)
                self.styles[at][start:end] = [style] * (end - start)

    def restyle(self, row: int, column: int, columns: int, style: str) -> None:
        """Change the style of cells but not their characters."""
        if 0 <= row < self.rows:
            start, end = max(0, column), min(self.columns, column + columns)
            if start < end:
                self.styles[row][start:end] = [style] * (end - start)

    def text(self) -> list[str]:
        """Return the rows as plain text, without trailing spaces."""
        return ["".join(row).rstrip() for row in self.chars]

    def _put_wide(self, row: int, column: int, text: str, style: str, end: int) -> int:
        chars, styles = self.chars[row], self.styles[row]
        for char in text:
            cells = width(char)
            if cells == 0:
                if column > 0 and chars[column - 1]:
                    chars[column - 1] += char  # a combining mark belongs to the cell before
                continue
            if column + cells > end:
                break
            chars[column] = char
            styles[column] = style
            if cells == 2:
                self.wide = True
                chars[column + 1] = WIDE_REST
                styles[column + 1] = style
            column += cells
        return column


def mend(grid: Grid) -> None:
    """Replace halves of overwritten wide characters by a blank."""
    if not grid.wide:
        return
    for chars in grid.chars:
        if WIDE_REST not in chars and all(map(str.isascii, chars)):
            continue
        for at, char in enumerate(chars):
            orphan = char == WIDE_REST and (at == 0 or width(chars[at - 1]) != 2)
            if orphan or (width(char) == 2 and (at + 1 >= len(chars) or chars[at + 1] != WIDE_REST)):
                chars[at] = " "


def draw(grid: Grid, row: int, column: int, text: Sequence[str], style: str = "") -> int:
    """Write trusted characters that all take one cell, and return the column after them.

    Several times faster than `Grid.put`, which checks each character; never use it for untrusted text.
    """
    if not 0 <= row < grid.rows or column < 0 or column >= grid.columns:
        return column
    end = min(grid.columns, column + len(text))
    grid.chars[row][column:end] = text if end - column == len(text) else text[: end - column]
    grid.styles[row][column:end] = [style] * (end - column)
    return end


def draw_styled(grid: Grid, row: int, column: int, text: Sequence[str], styles: list[str]) -> int:
    """Write trusted text like `draw`, with a style for each of its characters: one call for what would take several."""
    if not 0 <= row < grid.rows or column < 0 or column >= grid.columns:
        return column
    end = min(grid.columns, column + len(text))
    grid.chars[row][column:end] = text if end - column == len(text) else text[: end - column]
    grid.styles[row][column:end] = styles if end - column == len(styles) else styles[: end - column]
    return end


_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # drawn atomically if the terminal supports synchronized updates
_FAR = bytes(5)  # unchanged cells between two changes that are cheaper to skip than to rewrite


def difference(before: Grid | None, after: Grid, theme: Theme) -> str:
    """Return the text that turns one screen into the other; `before` None or of another size clears first."""
    fresh = before is None or (before.columns, before.rows) != (after.columns, after.rows)
    out: list[str] = ["\x1b[0m\x1b[2J"] if fresh else []
    old = Grid(after.columns, after.rows) if before is None or fresh else before
    style = ""
    for row in range(after.rows):
        chars, styles = after.chars[row], after.styles[row]
        if chars == old.chars[row] and styles == old.styles[row]:
            continue
        for start, end in _runs(old.chars[row], old.styles[row], chars, styles):
            out.append(f"\x1b[{row + 1};{start + 1}H")
            at = start
            for wanted, run in groupby(styles[start:end]):
                cells = len(list(run))
                if wanted != style:
                    out.append(theme.switch(wanted))
                    style = wanted
                out.append("".join(chars[at : at + cells]))
                at += cells
    if style:
        out.append(theme.switch(""))
    return f"{_BEGIN}{''.join(out)}{_END}" if out else ""


def _runs(old_chars: list[str], old_styles: list[str], chars: list[str], styles: list[str]) -> list[tuple[int, int]]:
    """Return the changed spans of a row: near ones are joined, and none splits a wide character."""
    # compared without a loop in Python: a chart changes whole rows at every sample
    changed = bytes(map(ne, chars, old_chars))
    if styles != old_styles:
        changed = bytes(map(or_, changed, map(ne, styles, old_styles)))
    runs: list[list[int]] = []
    at = changed.find(1)
    while at >= 0:
        end = changed.find(_FAR, at)
        runs.append([at, changed.rfind(1) + 1 if end < 0 else end])
        at = changed.find(1, runs[-1][1])
    for run in runs:
        while run[0] > 0 and (chars[run[0]] == WIDE_REST or old_chars[run[0]] == WIDE_REST):
            run[0] -= 1
        while run[1] < len(chars) and (chars[run[1]] == WIDE_REST or old_chars[run[1]] == WIDE_REST):
            run[1] += 1
    return [(start, end) for start, end in runs]
