"""A table laid out for a terminal: nothing is cut off where it can stand below or in a second part of the table."""

from __future__ import annotations

from ...present.line import Line, gauge, wrapped_lines
from ...present.text import width, wrap
from .document import Figure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ...present.line import Piece
    from ...present.theme import Theme
    from .document import TableBlock

    Told: TypeAlias = list[Piece]  # one cell

_SPACE = 2  # cells between columns
_BESIDE = 30  # cells in which a text can stand beside the numbers, wrapped
_BAR = 6
_ROWS = {"critical": "critical", "warn": "warn", "good": "good"}


def table_lines(block: TableBlock, rows: Sequence[Sequence[Told]], theme: Theme, room: int) -> list[Line]:
    """Return the table in at most `room` cells.

    Texts at the end of a row wrap in the room that is left, or stand on lines of their own below the row. Columns of numbers
    that do not fit make a second table with the same first column.
    """
    layout = _Layout(block, rows, theme)
    below = layout.give_up(room)
    lines: list[Line] = []
    for part in layout.parts(room):
        if lines:
            lines.append(Line())
        lines += _part(layout, part, theme, room, below if not lines else [])
    return lines


class _Layout:
    """Which columns stand side by side, and how wide each is."""

    def __init__(self, block: TableBlock, rows: Sequence[Sequence[Told]], theme: Theme) -> None:
        self.block = block
        self.rows = rows
        self.shown = [*range(len(block.header))]
        self.bar = _BAR
        self.headers: list[Sequence[str]] = []
        self.widths: list[int] = []
        self.measure()

    def measure(self) -> None:
        """Find the width of each column; a heading takes at most two lines."""
        self.headers, self.widths = [], []
        for at, title in enumerate(self.block.header):
            values, bar = self._values(at), self.bar + 1 if self.has_bar(at) else 0
            room = values + bar
            while len(words := wrap(title, room)) > 2:
                room += 1
            self.headers.append(words)
            self.widths.append(max(values, max(map(width, words)) - bar))

    def _values(self, at: int) -> int:
        return max((sum(width(text) for text, _ in row[at]) for row in self.rows), default=0)

    def has_bar(self, at: int) -> bool:
        """Tell whether a column's numbers have bars before them."""
        cells = (row[at] for row in self.block.rows)
        return self.bar > 0 and any(isinstance(cell, Figure) and cell.share is not None for cell in cells)

    def cells(self, at: int) -> int:
        """Return the cells of a column, its bar included."""
        return self.widths[at] + (self.bar + 1 if self.has_bar(at) else 0)

    def whole(self, shown: Sequence[int]) -> int:
        """Return the cells of these columns side by side."""
        return sum(self.cells(at) for at in shown) + _SPACE * (len(shown) - 1)

    def give_up(self, room: int) -> list[int]:
        """Narrow the table to `room` and return the columns of text that stand below the rows: its last text wraps, or moves below."""
        below: list[int] = []
        shown = [*self.shown]
        while self.whole(shown) > room and len(shown) > 2 and not self.block.numeric[shown[-1]]:
            left = room - self.whole(shown[:-1]) - _SPACE
            if left >= _BESIDE and not below:
                self.widths[shown[-1]] = left
                break
            below.insert(0, shown.pop())
        if self.whole(shown) <= room:
            self.shown = shown
            return below
        self._leave_out_bars(room)
        for at in self.shown:
            if not self.block.numeric[at]:
                self.widths[at] = min(self.widths[at], max(10, room - self.cells(self.shown[0]) - _SPACE))
        return []

    def _leave_out_bars(self, room: int) -> None:
        """Leave out the bars where the table then has fewer parts."""
        count = len(self._parts(room))
        self.bar = 0
        self.measure()
        if len(self._parts(room)) == count:
            self.bar = _BAR
            self.measure()

    def parts(self, room: int) -> list[list[int]]:
        """Return the columns of each part, all about equally wide; all but the first repeat the first column."""
        best = self._parts(room)
        least = max(map(self.cells, self.shown))
        return next((found for limit in range(least, room) if len(found := self._parts(limit)) == len(best)), best)

    def _parts(self, room: int) -> list[list[int]]:
        found = [[self.shown[0]]]
        for at in self.shown[1:]:
            if self.whole([*found[-1], at]) > room and len(found[-1]) > 1:
                found.append([self.shown[0]])
            found[-1].append(at)
        return found


def _part(layout: _Layout, shown: Sequence[int], theme: Theme, room: int, below: Sequence[int]) -> list[Line]:
    height = max(len(layout.headers[at]) for at in shown)
    lines = [_header(layout, shown, row, height) for row in range(height)]
    for number, row in enumerate(layout.rows):
        lines += _row(layout, shown, number, theme)
        told = [piece for at in below if _there(row[at]) for piece in _named(layout.block.header[at], row[at])]
        if told:
            lines += [Line().add("    ").extend(line) for line in wrapped_lines(told, room - 4)]
    return lines


def _header(layout: _Layout, shown: Sequence[int], row: int, height: int) -> Line:
    """Return one line of the headings, which stand at the bottom of their lines."""
    line = Line()
    for at in shown:
        words = layout.headers[at]
        first = height - len(words)
        text = words[row - first] if row >= first else ""
        line.add(" " * _SPACE if at != shown[0] else "").add(text, "label", layout.cells(at), layout.block.numeric[at])
    return line


def _row(layout: _Layout, shown: Sequence[int], number: int, theme: Theme) -> list[Line]:
    """Return one row: more than one line where a text wraps."""
    block = layout.block
    loud = _ROWS.get(block.styles.get(number, ""), "")
    columns = []
    for at in shown:
        told = layout.rows[number][at]
        style = "title" if at == 0 else loud if at == len(block.header) - 1 else ""
        columns.append([*wrapped_lines([(text, own or style) for text, own in told], layout.widths[at])])
    height = max(map(len, columns))
    lines = []
    for line_number in range(height):
        line = Line()
        for at, wrapped in zip(shown, columns, strict=True):
            line.add(" " * _SPACE if at != shown[0] else "")
            if layout.has_bar(at):
                line.extend(_bar(block.rows[number][at], theme, layout.bar, line_number)).add(" ")
            text = wrapped[line_number] if line_number < len(wrapped) else Line()
            space = Line().to(layout.widths[at] - text.width)
            line.extend(space.extend(text) if block.numeric[at] else text.extend(space))
        lines.append(line)
    return lines


def _bar(cell: object, theme: Theme, cells: int, line_number: int) -> Line:
    """Return the bar of a figure; blank where there is none."""
    if line_number or not isinstance(cell, Figure) or cell.share is None:
        return Line().to(cells)
    return gauge(theme, cell.share, cells, cell.style)


def _there(told: Told) -> bool:
    return "".join(text for text, _ in told) not in ("", "–", "-")


def _named(title: str, told: Told) -> Told:
    """Return a text that stands below its row, after the heading of its column."""
    return [(f" {title.lower()}: ", "label"), *told]
