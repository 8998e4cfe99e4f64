"""Lines made of styled pieces: laid out in cells first, coloured last."""

from __future__ import annotations

from .text import fit, pad, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .theme import Theme


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
            self.pieces.append((text, style))
            self.width += width(text)
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
