"""Colors and glyphs: themes, and what the terminal of a stream can show."""

from __future__ import annotations

import os

from .text import ascii_only, ascii_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    # For 16 colors, 256 and 24 bits; in the last, #rrggbb is a text color and on#rrggbb a background color.
    Sheet: TypeAlias = Mapping[str, tuple[str, str, str]]
    from collections.abc import Mapping
    from typing import TextIO

TRUE_COLOR = 1 << 24
THEMES = ("auto", "dark", "light", "neutral", "contrast", "blind", "mono")
_MOST_GAUGES = 2000
_BLOCKS = " ▏▎▍▌▋▊▉█"


class Theme:
    """How to draw on one terminal: `colors` is 0, 16, 256 or 16777216; without `unicode` everything is ASCII.

    `name` is one of THEMES: dark, light, neutral (readable on both), contrast, blind (color-blind safe), mono, or auto, which
    follows the `background`: dark, light, or empty if it is unknown. Raises UsageError for another name.
    Without colors, `paint` returns text unchanged, for pipes, and `switch` uses only bold, dim and reverse, for screens.
    """

    __slots__ = ("_codes", "_gauges", "_gradients", "_switches", "background", "colors", "more", "name", "unicode")

    def __init__(self, colors: int = 0, unicode: bool = True, name: str = "dark", background: str = "") -> None:
        if name not in THEMES:
            raise unknown_theme(name)
        self.colors = colors
        self.unicode = unicode
        self.name = name
        self.background = background
        self.more = "…" if unicode else "~"
        self._codes: Mapping[str, str] = _codes(SHEETS[_palette(name, background)], colors) if colors else {}
        self._gauges: dict[tuple[str, int, int, bool], list[str]] = {}
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
                palette = _palette(self.name, self.background)
                self._switches = {**self._switches, **gradient_codes(SHEETS[palette], palette)}
        if f"{style}~0" not in self._switches or not cells:
            return None
        if (style, cells) not in self._gradients:
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

    def gauge(self, share: float | None, cells: int, style: str, shaded: bool = True) -> tuple[str, list[str]]:
        """Return a bar as text with the style of each cell, `shaded` or not; the list is shared, so do not change it."""
        filled, empty = self.bar(share, cells)
        name = (style, len(filled), cells, shaded)
        found = self._gauges.get(name)
        if found is None:
            if len(self._gauges) > _MOST_GAUGES:
                self._gauges.clear()
            shades = (self.shaded(style, cells) if filled and shaded else None) or [style] * cells
            found = self._gauges[name] = [*shades[: len(filled)], *["track"] * len(empty)]
        return filled + empty, found


def _palette(name: str, background: str) -> str:
    """Return the name of the palette of a theme; a theme with one palette has it on every background."""
    if name == "auto":
        return background or "neutral"
    return f"{name}-{background}" if f"{name}-{background}" in SHEETS else name


def _codes(sheet: Sheet, colors: int) -> Mapping[str, str]:
    whole = {"chart1": sheet["busy"], "chart2": sheet["memory"], **sheet}
    if colors >= TRUE_COLOR:
        return {style: ";".join(map(_true, codes[2].split(";"))) for style, codes in whole.items()}
    column = 0 if colors == 16 else 1
    return {style: codes[column] for style, codes in whole.items()}


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


STEPS = 8
_STYLES = ("good", "busy", "memory", "warn")
_DULLEST = 0.5  # share of its own color that the first cell of a bar has
# The palettes with a gradient, and the background that the colors come out of. The others exist for their contrast.
_BACKGROUNDS = {"dark": (0, 0, 0), "blind": (0, 0, 0), "light": (255, 255, 255), "blind-light": (255, 255, 255)}


def gradient_codes(sheet: Sheet, name: str) -> Mapping[str, str]:
    """Return the codes of the styles `busy~0` to `busy~7` and so on; none for a palette without a gradient."""
    behind = _BACKGROUNDS.get(name)
    if behind is None:
        return {}
    return {
        f"{style}~{step}": _mixed(sheet[style][2], behind, _DULLEST + (1 - _DULLEST) * step / (STEPS - 1))
        for style in _STYLES
        for step in range(STEPS)
    }


def gradient(style: str, cells: int) -> list[str]:
    """Return the style of each cell of a bar of this length."""
    return [f"{style}~{at * STEPS // cells}" for at in range(cells)]


def _mixed(color: str, behind: tuple[int, int, int], share: float) -> str:
    digits = color.rpartition("#")[2]
    parts = [round(share * own + (1 - share) * back) for own, back in zip(bytes.fromhex(digits), behind, strict=True)]
    return "38;2;" + ";".join(map(str, parts))


# One row per style. A style is named after its meaning: `busy` and chart1 are activity, `memory` and chart2 memory, chart3 power,
# temperature and clocks, chart4 links; none of these is the color of a warning. chart1 and chart2 are `busy` and `memory` unless listed.
# Values (`calm`) have the terminal's own foreground.
# fmt: off
DARK: Sheet = {
    "title":    ("1", "1", "1"),
    "label":    ("2", "38;5;245", "#8a8a8a"),
    "faint":    ("2", "38;5;242", "#6c6c6c"),
    "track":    ("2", "38;5;242", "#6c6c6c"),
    "good":     ("32", "38;5;71", "#5faf5f"),
    "busy":     ("32", "38;5;78", "#5fd787"),
    "calm":     ("", "", ""),
    "memory":   ("36", "38;5;74", "#5fafd7"),
    "user":     ("34", "38;5;110", "#87afd7"),
    "warn":     ("33", "38;5;214", "#ffaf00"),
    "critical": ("1;31", "1;38;5;203", "1;#ff5f5f"),
    "accent":   ("1;36", "1;38;5;80", "1;#5fd7d7"),
    "selected": ("7", "1;38;5;231;48;5;24", "1;#ffffff;on#005f87"),
    "border":   ("2", "38;5;242", "#6c6c6c"),
    "chart3":   ("37", "38;5;187", "#d7d7af"),
    "chart4":   ("35", "38;5;176", "#d787d7"),
    "loud":     ("1;37;41", "1;38;5;231;48;5;160", "1;#ffffff;on#d70000"),
}
# Yellow is unreadable on white, and most palettes have a bright one: with 16 colors, warnings are magenta.
LIGHT: Sheet = {
    "title":    ("1", "1", "1"),
    "label":    ("2", "38;5;240", "#585858"),
    "faint":    ("2", "38;5;244", "#808080"),
    "track":    ("2", "38;5;245", "#8a8a8a"),
    "good":     ("32", "38;5;22", "#1a6b2a"),
    "busy":     ("32", "38;5;22", "#00641e"),
    "calm":     ("", "", ""),
    "memory":   ("34", "38;5;24", "#005f87"),
    "user":     ("34", "38;5;25", "#005faf"),
    "warn":     ("35", "38;5;94", "#8a4b00"),
    "critical": ("1;31", "1;38;5;124", "1;#af0000"),
    "accent":   ("1;34", "1;38;5;25", "1;#00558f"),
    "selected": ("7", "1;38;5;16;48;5;153", "1;#000000;on#afd7ff"),
    "border":   ("2", "38;5;245", "#8a8a8a"),
    "chart3":   ("36", "38;5;58", "#5f5f00"),
    "chart4":   ("35", "38;5;90", "#870087"),
    "loud":     ("1;37;41", "1;38;5;231;48;5;124", "1;#ffffff;on#af0000"),
}
CONTRAST: Sheet = {
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
    "chart3":   ("1;37", "1;38;5;230", "1;#ffffd7"),
    "chart4":   ("1;35", "1;38;5;219", "1;#ffafff"),
    "loud":     ("1;5;7", "1;38;5;16;48;5;231", "1;#000000;on#ffffff"),
}
# Nearly everybody can distinguish blue and orange; warnings are also bold, and critical values underlined.
BLIND: Sheet = {
    **DARK,
    "good":     ("36", "38;5;74", "#56b4e9"),
    "busy":     ("36", "38;5;75", "#56b4e9"),
    "memory":   ("34", "38;5;63", "#6060ff"),
    "user":     ("36", "38;5;110", "#87afd7"),
    "warn":     ("1;33", "1;38;5;214", "1;#e69f00"),
    "critical": ("1;4;33", "1;4;38;5;208", "1;4;#ff8700"),
    "accent":   ("1;36", "1;38;5;117", "1;#87d7ff"),
    "selected": ("7", "1;38;5;231;48;5;25", "1;#ffffff;on#005faf"),
    "chart3":   ("37", "38;5;231", "#ffffff"),
    "chart4":   ("35", "38;5;132", "#af5f87"),
    "loud":     ("1;4;7;33", "1;4;38;5;16;48;5;214", "1;4;#000000;on#e69f00"),
}
# For a terminal whose background is unknown: every color can be read on black and on white, which leaves only middle tones.
NEUTRAL: Sheet = {
    **DARK,
    "label":    ("", "38;5;243", "#757575"),
    "faint":    ("2", "38;5;243", "#757575"),
    "track":    ("2", "38;5;243", "#757575"),
    "good":     ("32", "38;5;65", "#58804f"),
    "busy":     ("32", "38;5;29", "#008844"),
    "memory":   ("36", "38;5;31", "#007ea9"),
    "user":     ("36", "38;5;63", "#506aec"),
    "warn":     ("1;35", "1;38;5;130", "1;#b35f00"),
    "critical": ("1;31", "1;38;5;161", "1;#ea0c1f"),
    "accent":   ("1;36", "1;38;5;30", "1;#088199"),
    "border":   ("2", "38;5;243", "#757575"),
    "chart3":   ("36", "38;5;97", "#7d7726"),
    "chart4":   ("35", "38;5;133", "#c431c4"),
}
CONTRAST_LIGHT: Sheet = {
    "title":    ("1", "1;38;5;16", "1;#000000"),
    "label":    ("", "38;5;235", "#262626"),
    "faint":    ("", "38;5;239", "#4e4e4e"),
    "track":    ("", "38;5;241", "#626262"),
    "good":     ("1;32", "1;38;5;22", "1;#005f00"),
    "busy":     ("1;32", "1;38;5;22", "1;#005f00"),
    "calm":     ("1", "38;5;16", "#000000"),
    "memory":   ("1;34", "1;38;5;18", "1;#000087"),
    "user":     ("1;34", "38;5;17", "#00005f"),
    "warn":     ("1;35", "1;38;5;53", "1;#5f005f"),
    "critical": ("1;7;31", "1;38;5;231;48;5;88", "1;#ffffff;on#870000"),
    "accent":   ("1;4;34", "1;4;38;5;18", "1;4;#000087"),
    "selected": ("1;7", "1;38;5;231;48;5;16", "1;#ffffff;on#000000"),
    "border":   ("1", "38;5;16", "#000000"),
    "chart3":   ("1;36", "1;38;5;23", "1;#4d4d00"),
    "chart4":   ("1;35", "1;38;5;53", "1;#5f005f"),
    "loud":     ("1;5;7", "1;38;5;226;48;5;16", "1;#ffff00;on#000000"),
}
BLIND_LIGHT: Sheet = {
    **LIGHT,
    "good":     ("34", "38;5;25", "#005faf"),
    "busy":     ("34", "38;5;25", "#00558f"),
    "memory":   ("35", "38;5;63", "#5f5fff"),
    "user":     ("34", "38;5;24", "#005f87"),
    "warn":     ("1;33", "1;38;5;130", "1;#a05000"),
    "critical": ("1;4;31", "1;4;38;5;94", "1;4;#7a3d00"),
    "chart3":   ("30", "38;5;16", "#000000"),
    "chart4":   ("36", "38;5;29", "#00704a"),
    "loud":     ("1;4;7;33", "1;4;38;5;231;48;5;94", "1;4;#ffffff;on#7a3d00"),
}
MONO: Mapping[str, str] = {
    "title": "1", "label": "2", "faint": "2", "track": "2", "good": "", "busy": "", "calm": "", "memory": "", "user": "",
    "warn": "1", "critical": "1;7", "accent": "1", "selected": "7", "border": "2",
    "chart1": "1", "chart2": "", "chart3": "2", "chart4": "", "loud": "1;7",
}
# fmt: on
SHEETS: Mapping[str, Sheet] = {
    "dark": DARK,
    "light": LIGHT,
    "neutral": NEUTRAL,
    "contrast": CONTRAST,
    "contrast-light": CONTRAST_LIGHT,
    "blind": BLIND,
    "blind-light": BLIND_LIGHT,
    "mono": {style: (code, code, code) for style, code in MONO.items()},
}


def theme_for(stream: TextIO, color: str, environ: Mapping[str, str], name: str = "auto") -> Theme:
    """Return the theme for a stream: colors if requested or on a capable terminal, Unicode if the stream can encode it.

    Raises UsageError if there is no theme of this `name`.
    """
    background = stated_background(environ)
    return Theme(colors_of(stream, color, environ), _writes_unicode(stream, environ), name, background)


def capable(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Tell whether a stream is a terminal that can be drawn on, cursor moves and all."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def size_of(stream: TextIO, environ: Mapping[str, str]) -> tuple[int, int]:
    """Return columns and rows of a stream's terminal; 120 by 40 for a file or a pipe unless COLUMNS says otherwise."""
    try:
        found = os.get_terminal_size(stream.fileno())
        columns, rows = found.columns, found.lines
    except (OSError, ValueError, AttributeError):
        columns, rows = 0, 0
    stated = environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        columns = int(stated)
    return columns or 120, rows or 40


def colors_of(stream: TextIO, color: str, environ: Mapping[str, str]) -> int:
    """Return the number of colors to use on a stream: 0, 16, 256 or 16777216."""
    if color == "never" or (color == "auto" and environ.get("NO_COLOR")):
        return 0
    forced = color == "always" or environ.get("FORCE_COLOR", "0") not in ("", "0")
    if not forced and not capable(stream, environ):
        return 0
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return TRUE_COLOR
    term = environ.get("TERM", "")
    return 256 if "256" in term or environ.get("COLORTERM") else 16


def _writes_unicode(stream: TextIO, environ: Mapping[str, str]) -> bool:
    if ascii_only(environ):
        return False
    try:
        "█·°…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


QUERY = "\x1b]11;?\x1b\\"
_DARK = frozenset(("0", "1", "2", "3", "4", "5", "6", "8"))  # of the 16 colors of a terminal
_LIGHT = frozenset(("7", "9", "10", "11", "12", "13", "14", "15"))
_MIDDLE = 0.18  # relative luminance from which black text has more contrast than white


def stated_background(environ: Mapping[str, str]) -> str:
    """Return what COLORFGBG says, written as 15;0 or 0;default;15: "dark", "light", or "" if it says nothing."""
    color = environ.get("COLORFGBG", "").rpartition(";")[2].strip()
    return "dark" if color in _DARK else "light" if color in _LIGHT else ""


def answered_background(answer: str) -> str:
    """Return what an answer to QUERY says, as in `11;rgb:ffff/ffff/dddd`: "dark", "light", or "" if it is another text."""
    number, _, color = answer.partition(";")
    kind, _, parts = color.partition(":")
    if number != "11" or kind not in ("rgb", "rgba"):
        return ""
    try:
        red, green, blue = [_share(part) for part in parts.split("/")[:3]]
    except ValueError:
        return ""
    return "light" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > _MIDDLE else "dark"


def _share(digits: str) -> float:
    """Return one part of a color, of 1 to 4 hexadecimal digits, as linear light between 0 and 1."""
    if not 1 <= len(digits) <= 4 or not digits.isalnum():
        raise ValueError(digits)
    value = float(int(digits, 16)) / float(16 ** len(digits) - 1)
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
