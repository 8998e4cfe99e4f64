"""What a terminal can show: its size, its colors, its characters, and whether its background is dark or light."""

from __future__ import annotations

import os

from .text import ascii_only
from .theme import TRUE_COLOR, Theme

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO


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
