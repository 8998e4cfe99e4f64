"""Themes: the colors of styles and the glyphs that a terminal can show."""

from __future__ import annotations

from .palettes import MONO, SHEETS
from .text import ascii_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .palettes import Sheet

TRUE_COLOR = 1 << 24
THEMES = ("auto", "dark", "light", "neutral", "contrast", "blind", "mono")
_BLOCKS = " ▏▎▍▌▋▊▉█"


class Theme:
    """How to draw on one terminal: `colors` is 0, 16, 256 or 16777216; without `unicode` everything is ASCII.

    `name` is one of THEMES: dark, light, neutral (readable on both), contrast, blind (color-blind safe), mono, or auto, which
    follows the `background`: dark, light, or empty if it is unknown. Raises UsageError for another name.
    Without colors, `paint` returns text unchanged, for pipes, and `switch` uses only bold, dim and reverse, for screens.
    """

    __slots__ = ("_codes", "_gradients", "_switches", "background", "colors", "more", "name", "unicode")

    def __init__(self, colors: int = 0, unicode: bool = True, name: str = "dark", background: str = "") -> None:
        if name not in THEMES:
            raise unknown_theme(name)
        self.colors = colors
        self.unicode = unicode
        self.name = name
        self.background = background
        self.more = "…" if unicode else "~"
        self._codes: Mapping[str, str] = _codes(SHEETS[_palette(name, background)], colors) if colors else {}
        self._gradients: dict[tuple[str, int], list[str]] | None = None
        self._switches: Mapping[str, str] = self._codes if colors else MONO  # NO_COLOR does not forbid bold

    def on(self, background: str) -> Theme:
        """Return the same theme for another background."""
        return Theme(self.colors, self.unicode, self.name, background)

    def named(self, name: str) -> Theme:
        """Return another theme for the same terminal."""
        return Theme(self.colors, self.unicode, name, self.background)

    def paint(self, text: str, style: str) -> str:
        """Return text in a style, which ends where the text does."""
        code = self._codes.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def switch(self, style: str) -> str:
        """Return what changes a terminal to a style, whatever it had before."""
        code = self._switches.get(style)
        return f"\x1b[0;{code}m" if code else "\x1b[0m"

    def shaded(self, style: str, cells: int) -> list[str] | None:
        """Return the style of each cell of a bar that becomes brighter to its end; None if the terminal cannot show that."""
        if self._gradients is None:
            self._gradients = {}
            if self.colors >= TRUE_COLOR:
                from .gradient import gradient_codes  # only for screens with bars

                palette = _palette(self.name, self.background)
                self._switches = {**self._switches, **gradient_codes(SHEETS[palette], palette)}
        if f"{style}~0" not in self._switches or not cells:
            return None
        if (style, cells) not in self._gradients:
            from .gradient import gradient

            self._gradients[style, cells] = gradient(style, cells)
        return self._gradients[style, cells]

    def spelled(self, text: str) -> str:
        """Return text in characters this terminal has."""
        return text if self.unicode or text.isascii() else ascii_text(text.replace("…", self.more))

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


def _palette(name: str, background: str) -> str:
    """Return the name of the palette of a theme; a theme with one palette has it on every background."""
    if name == "auto":
        return background or "neutral"
    return f"{name}-{background}" if f"{name}-{background}" in SHEETS else name


def _codes(sheet: Sheet, colors: int) -> Mapping[str, str]:
    if colors >= TRUE_COLOR:
        return {style: ";".join(map(_true, codes[2].split(";"))) for style, codes in sheet.items()}
    column = 0 if colors == 16 else 1
    return {style: codes[column] for style, codes in sheet.items()}


def _true(word: str) -> str:
    """Return the terminal's code for #rrggbb or on#rrggbb; return any other word as it is."""
    where, mark, digits = word.partition("#")
    if not mark:
        return word
    red, green, blue = bytes.fromhex(digits)
    return f"{48 if where else 38};2;{red};{green};{blue}"


def unknown_theme(name: str) -> Exception:
    """Return the error for a theme that does not exist."""
    from ..errors import UsageError  # needed only for this error
    from ..model.select import did_you_mean

    return UsageError(f"unknown theme {name!r}{did_you_mean(name, THEMES)}", f"choose one of {', '.join(THEMES)}.")
