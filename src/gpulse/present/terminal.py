"""What a terminal can do, from the environment and the stream."""

from __future__ import annotations

import os

from .background import stated_background
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
