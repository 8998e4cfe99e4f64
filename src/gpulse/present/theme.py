"""Themes: names of styles to colours, and the glyphs a terminal can show."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# One row a style: for 16 colours, for 256 colours. Names say what a thing means, never how it looks.
_STYLES = {
    "title": ("1", "1"),
    "label": ("2", "38;5;245"),
    "faint": ("2", "38;5;240"),
    "track": ("2", "38;5;238"),
    "good": ("32", "38;5;71"),
    "busy": ("32", "38;5;78"),
    "calm": ("", "38;5;252"),
    "memory": ("36", "38;5;74"),
    "user": ("34", "38;5;110"),
    "warn": ("33", "38;5;214"),
    "critical": ("1;31", "1;38;5;203"),
    "accent": ("1;36", "1;38;5;80"),
}
_BLOCKS = " ▏▎▍▌▋▊▉█"


class Theme:
    """How to draw on one terminal: `colors` is 0, 16 or 256; without `unicode` everything is ASCII."""

    __slots__ = ("_codes", "colors", "more", "unicode")

    def __init__(self, colors: int = 0, unicode: bool = True) -> None:
        self.colors = colors
        self.unicode = unicode
        self.more = "…" if unicode else "~"
        column = 0 if colors == 16 else 1
        self._codes: Mapping[str, str] = {name: codes[column] for name, codes in _STYLES.items()} if colors else {}

    def paint(self, text: str, style: str) -> str:
        """Return text in a style, which ends where the text does."""
        code = self._codes.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def switch(self, style: str) -> str:
        """Return what changes a terminal to a style, whatever it had before."""
        code = self._codes.get(style)
        return f"\x1b[0;{code}m" if code else "\x1b[0m"

    def spelled(self, text: str) -> str:
        """Return text in characters this terminal has; what it has not is written out."""
        if self.unicode or text.isascii():
            return text
        return text.replace("…", self.more).encode("ascii", "backslashreplace").decode("ascii")

    def glyph(self, unicode: str, ascii: str) -> str:
        """Return the first where the terminal has Unicode, else the second."""
        return unicode if self.unicode else ascii

    def bar(self, share: float | None, cells: int) -> tuple[str, str]:
        """Return the filled and the empty part of a bar; together they take `cells`. None is an empty bar."""
        part = 0.0 if share is None else min(1.0, max(0.0, share))
        if not self.unicode:
            full = round(part * cells)
            return "#" * full, "-" * (cells - full)
        eighths = round(part * cells * 8)
        if share and cells and part > 0 and eighths == 0:
            eighths = 1  # something is never drawn as nothing
        full, rest = divmod(eighths, 8)
        filled = "█" * full + (_BLOCKS[rest] if rest else "")
        return filled, "·" * (cells - len(filled))
