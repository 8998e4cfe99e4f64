"""Lines made of styled pieces: laid out and wrapped in cells first, colored last."""

from __future__ import annotations

from itertools import groupby

from .text import column_widths, fit, pad, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from .theme import Theme

    Piece: TypeAlias = tuple[str, str]  # a text and the name of its style


class Line:
    """One line of a screen: pieces of text, each with the name of a style."""

    __slots__ = ("pieces", "width")

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str]] = []
        self.width = 0

    def add(self, text: str, style: str = "", cells: int | None = None, right: bool = False) -> Line:
        """Add a piece, cut and filled to `cells` where given; returns the line itself."""
        if cells is not None:
            text = pad(fit(text, cells), cells, right)
        if text:
            self.width += width(text)
            if self.pieces and self.pieces[-1][1] == style:
                text = self.pieces.pop()[0] + text
            self.pieces.append((text, style))
        return self

    def extend(self, other: Line) -> Line:
        """Add all pieces of another line."""
        self.pieces.extend(other.pieces)
        self.width += other.width
        return self

    def to(self, column: int) -> Line:
        """Fill with spaces up to a column."""
        return self.add(" " * max(0, column - self.width))

    def render(self, theme: Theme, columns: int) -> str:
        """Return the line as text for a terminal, cut to `columns`, without spaces at its end."""
        room = columns
        out: list[str] = []
        for text, style in self.pieces:
            piece = fit(theme.spelled(text), room, theme.more)
            out.append(theme.paint(piece, style))
            room -= width(piece)
            if room <= 0:
                break
        return "".join(out).rstrip() if not theme.colors else "".join(out)


def gauge(theme: Theme, share: float | None, cells: int, style: str) -> Line:
    """Return a bar that is filled to `share` of its cells."""
    filled, empty = theme.bar(share, cells)
    return Line().add(filled, style).add(empty, "track")


def line_of(pieces: Iterable[tuple[str, str]]) -> Line:
    """Return a line of pieces, each a text with the name of a style."""
    line = Line()
    for text, style in pieces:
        line.add(text, style)
    return line


def line_of_cells(text: str, styles: Sequence[str]) -> Line:
    """Return a line of a text whose characters all take one cell, with the style of each."""
    line, at = Line(), 0
    for style, run in groupby(styles):
        end = at + len(list(run))
        line.add(text[at:end], style)
        at = end
    return line


def table_lines(titles: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]], right: Sequence[bool]) -> list[Line]:
    """Return a line of titles and one for each row, in aligned columns; a cell is a text with the name of a style."""
    styled = [[(title, "label") for title in titles], *rows]
    widths = column_widths([[text for text, _ in row] for row in styled])
    lines = []
    for row in styled:
        line = Line()
        for (text, style), room, side in zip(row[:-1], widths, right, strict=False):
            line.add(text, style, room, side).add("  ")
        lines.append(line.add(*row[-1], widths[-1] if right[-1] else None, right[-1]))
    return lines


def wrapped_lines(pieces: Iterable[Piece], columns: int) -> list[Line]:
    """Return pieces as lines of at most `columns` cells, broken at spaces; a longer word is broken where the line ends."""
    room = max(1, columns)
    lines = [Line()]
    for word in _words(pieces):
        wide = sum(width(text) for text, _ in word)
        if lines[-1].width and lines[-1].width + 1 + wide > room:
            lines.append(Line())
        if lines[-1].width:
            lines[-1].add(" ", word[0][1])
        for text, style in word:
            _fill(lines, text, style, room)
    return lines


def _words(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Return the words, each in as many pieces as it has styles."""
    words: list[list[Piece]] = [[]]
    for text, style in pieces:
        for at, part in enumerate(text.split(" ")):
            if at and words[-1]:
                words.append([])
            if part:
                words[-1].append((part, style))
    return [word for word in words if word]


def _fill(lines: list[Line], text: str, style: str, room: int) -> None:
    """Add a word, or a part of one, to the last line; continue on new lines while it is too long."""
    if lines[-1].width + width(text) <= room:
        lines[-1].add(text, style)
        return
    for char in text:
        if lines[-1].width + width(char) > room:
            lines.append(Line())
        lines[-1].add(char, style)
