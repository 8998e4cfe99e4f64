"""Themes: names of styles to colours, and the glyphs a terminal can show."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    # For 16 colours, for 256, for 24 bits; in the last, #rrggbb is a colour of the text and on#rrggbb one behind it.
    Sheet: TypeAlias = Mapping[str, tuple[str, str, str]]

TRUE_COLOR = 1 << 24

# One row a style. Names say what a thing means, never how it looks.
# fmt: off
_DARK: Sheet = {
    "title":    ("1", "1", "1"),
    "label":    ("2", "38;5;245", "#8a8a8a"),
    "faint":    ("2", "38;5;242", "#6c6c6c"),
    "track":    ("2", "38;5;241", "#626262"),
    "good":     ("32", "38;5;71", "#5faf5f"),
    "busy":     ("32", "38;5;78", "#5fd787"),
    "calm":     ("", "38;5;252", "#d0d0d0"),
    "memory":   ("36", "38;5;74", "#5fafd7"),
    "user":     ("34", "38;5;110", "#87afd7"),
    "warn":     ("33", "38;5;214", "#ffaf00"),
    "critical": ("1;31", "1;38;5;203", "1;#ff5f5f"),
    "accent":   ("1;36", "1;38;5;80", "1;#5fd7d7"),
    "selected": ("7", "1;38;5;231;48;5;24", "1;#ffffff;on#005f87"),
    "border":   ("2", "38;5;242", "#6c6c6c"),
    "chart1":   ("32", "38;5;78", "#5fd787"),
    "chart2":   ("36", "38;5;74", "#5fafd7"),
    "chart3":   ("33", "38;5;214", "#ffaf00"),
    "chart4":   ("35", "38;5;176", "#d787d7"),
    "loud":     ("1;37;41", "1;38;5;231;48;5;160", "1;#ffffff;on#d70000"),
}
# Yellow cannot be read on white, and most palettes have a bright one: 16 colours warn in magenta.
_LIGHT: Sheet = {
    "title":    ("1", "1", "1"),
    "label":    ("2", "38;5;240", "#585858"),
    "faint":    ("2", "38;5;244", "#808080"),
    "track":    ("2", "38;5;245", "#8a8a8a"),
    "good":     ("32", "38;5;22", "#1a6b2a"),
    "busy":     ("32", "38;5;22", "#00641e"),
    "calm":     ("", "38;5;236", "#303030"),
    "memory":   ("34", "38;5;24", "#005f87"),
    "user":     ("34", "38;5;25", "#005faf"),
    "warn":     ("35", "38;5;94", "#8a4b00"),
    "critical": ("1;31", "1;38;5;124", "1;#af0000"),
    "accent":   ("1;34", "1;38;5;25", "1;#00558f"),
    "selected": ("7", "1;38;5;16;48;5;153", "1;#000000;on#afd7ff"),
    "border":   ("2", "38;5;245", "#8a8a8a"),
    "chart1":   ("32", "38;5;22", "#00641e"),
    "chart2":   ("34", "38;5;25", "#005faf"),
    "chart3":   ("31", "38;5;130", "#a04000"),
    "chart4":   ("35", "38;5;90", "#870087"),
    "loud":     ("1;37;41", "1;38;5;231;48;5;124", "1;#ffffff;on#af0000"),
}
_CONTRAST: Sheet = {
    "title":    ("1", "1;38;5;231", "1;#ffffff"),
    "label":    ("", "38;5;255", "#eeeeee"),
    "faint":    ("", "38;5;250", "#bcbcbc"),
    "track":    ("", "38;5;248", "#a8a8a8"),
    "good":     ("1;32", "1;38;5;120", "1;#87ff87"),
    "busy":     ("1;32", "1;38;5;120", "1;#87ff87"),
    "calm":     ("1", "38;5;231", "#ffffff"),
    "memory":   ("1;36", "1;38;5;123", "1;#87ffff"),
    "user":     ("1;36", "38;5;159", "#afffff"),
    "warn":     ("1;33", "1;38;5;226", "1;#ffff00"),
    "critical": ("1;7;31", "1;38;5;16;48;5;217", "1;#000000;on#ffafaf"),
    "accent":   ("1;4;36", "1;4;38;5;123", "1;4;#87ffff"),
    "selected": ("1;7", "1;38;5;16;48;5;226", "1;#000000;on#ffff00"),
    "border":   ("1", "38;5;231", "#ffffff"),
    "chart1":   ("1;32", "1;38;5;120", "1;#87ff87"),
    "chart2":   ("1;36", "1;38;5;123", "1;#87ffff"),
    "chart3":   ("1;33", "1;38;5;226", "1;#ffff00"),
    "chart4":   ("1;35", "1;38;5;219", "1;#ffafff"),
    "loud":     ("1;5;7", "1;38;5;16;48;5;231", "1;#000000;on#ffffff"),
}
# Blue and orange are told apart by nearly everybody; what is serious is bold as well, and the worst underlined too.
_BLIND: Sheet = {
    "title":    ("1", "1", "1"),
    "label":    ("2", "38;5;245", "#8a8a8a"),
    "faint":    ("2", "38;5;242", "#6c6c6c"),
    "track":    ("2", "38;5;241", "#626262"),
    "good":     ("36", "38;5;74", "#56b4e9"),
    "busy":     ("36", "38;5;75", "#56b4e9"),
    "calm":     ("", "38;5;252", "#d0d0d0"),
    "memory":   ("34", "38;5;69", "#6f9fff"),
    "user":     ("36", "38;5;110", "#87afd7"),
    "warn":     ("1;33", "1;38;5;214", "1;#e69f00"),
    "critical": ("1;4;33", "1;4;38;5;208", "1;4;#ff8700"),
    "accent":   ("1;36", "1;38;5;117", "1;#87d7ff"),
    "selected": ("7", "1;38;5;231;48;5;25", "1;#ffffff;on#005faf"),
    "border":   ("2", "38;5;242", "#6c6c6c"),
    "chart1":   ("36", "38;5;74", "#56b4e9"),
    "chart2":   ("33", "38;5;214", "#e69f00"),
    "chart3":   ("37", "38;5;231", "#ffffff"),
    "chart4":   ("34", "38;5;63", "#6060ff"),
    "loud":     ("1;4;7;33", "1;4;38;5;16;48;5;214", "1;4;#000000;on#e69f00"),
}
_MONO = {
    "title": "1", "label": "2", "faint": "2", "track": "2", "good": "", "busy": "", "calm": "", "memory": "", "user": "",
    "warn": "1", "critical": "1;7", "accent": "1", "selected": "7", "border": "2",
    "chart1": "1", "chart2": "", "chart3": "2", "chart4": "", "loud": "1;7",
}
# fmt: on
_SHEETS: Mapping[str, Sheet] = {
    "dark": _DARK,
    "light": _LIGHT,
    "contrast": _CONTRAST,
    "blind": _BLIND,
    "mono": {style: (code, code, code) for style, code in _MONO.items()},
}
THEMES = tuple(_SHEETS)
_BLOCKS = " ▏▎▍▌▋▊▉█"


class Theme:
    """How to draw on one terminal: `colors` is 0, 16, 256 or 16777216; without `unicode` everything is ASCII.

    `name` is one of THEMES: dark, light, contrast, blind (safe for the colour-blind) or mono; UsageError for another.
    Without colours `paint` leaves text as it is, for pipes, and `switch` keeps to bold, dim and reverse, for screens.
    """

    __slots__ = ("_codes", "_switches", "colors", "more", "name", "unicode")

    def __init__(self, colors: int = 0, unicode: bool = True, name: str = "dark") -> None:
        if name not in _SHEETS:
            raise _unknown(name)
        self.colors = colors
        self.unicode = unicode
        self.name = name
        self.more = "…" if unicode else "~"
        self._codes: Mapping[str, str] = _codes(_SHEETS[name], colors) if colors else {}
        self._switches: Mapping[str, str] = self._codes if colors else _MONO  # NO_COLOR says nothing against bold

    def paint(self, text: str, style: str) -> str:
        """Return text in a style, which ends where the text does."""
        code = self._codes.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def switch(self, style: str) -> str:
        """Return what changes a terminal to a style, whatever it had before."""
        code = self._switches.get(style)
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


def _codes(sheet: Sheet, colors: int) -> Mapping[str, str]:
    if colors >= TRUE_COLOR:
        return {style: ";".join(map(_true, codes[2].split(";"))) for style, codes in sheet.items()}
    column = 0 if colors == 16 else 1
    return {style: codes[column] for style, codes in sheet.items()}


def _true(word: str) -> str:
    """Return the terminal's code for #rrggbb or on#rrggbb; any other word is one already."""
    where, mark, digits = word.partition("#")
    if not mark:
        return word
    red, green, blue = bytes.fromhex(digits)
    return f"{48 if where else 38};2;{red};{green};{blue}"


def _unknown(name: str) -> Exception:
    from ..errors import UsageError  # only a mistake needs these
    from ..model.select import did_you_mean

    return UsageError(f"unknown theme {name!r}{did_you_mean(name, THEMES)}", f"choose one of {', '.join(THEMES)}.")
