"""Styled text broken into lines at spaces, measured in terminal cells."""

from __future__ import annotations

from .line import Line
from .text import width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    Piece: TypeAlias = tuple[str, str]  # a text and the name of its style


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


def wrapped_header(title: str, columns: int) -> Sequence[str]:
    """Return the heading of a column on as few lines as it needs in `columns` cells; words stay whole."""
    lines = [""]
    for word in title.split():
        if lines[-1] and width(lines[-1]) + 1 + width(word) > columns:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines
