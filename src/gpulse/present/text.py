"""Text for terminals: what comes from processes and boards made harmless, measured and cut in cells."""

from __future__ import annotations


class Untrusted(str):
    """Text that a process, a driver or a training program chose: shown as it is, never interpreted as markup."""

    __slots__ = ()


def clean(text: str) -> str:
    """Return text with every control, format and bidirectional character written out, so that a name cannot act on a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else _written(char) for char in text)


def width(text: str) -> int:
    """Return how many terminal cells a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


def fit(text: str, cells: int, more: str = "…") -> str:
    """Return text cut to at most `cells`, ending in `more` where something is missing."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    kept, room = "", cells - len(more)
    for char in text:
        if width(kept + char) > room:
            break
        kept += char
    return kept + more if room >= 0 else more[:cells]


def pad(text: str, cells: int, right: bool = False) -> str:
    """Return text filled with spaces to `cells`; `right` puts the text at the right end."""
    space = " " * max(0, cells - width(text))
    return space + text if right else text + space


def _written(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
