"""The background of a terminal, dark or light: from COLORFGBG, or from the terminal's answer to a query (OSC 11)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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
