"""Text for terminals: escape untrusted text, and measure and cut it in cells."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# What stands for a character on a terminal that has only ASCII; letters lose their accents, and anything else is a question mark.
_ASCII = {
    "·": "-", "–": "-", "…": "...", "°": "", "µ": "u", "×": "x", "±": "+-", "÷": "/", "₂": "2", "≥": ">=", "≤": "<=", "¦": "|",
    "←": "<-", "→": "->", "↑": "^", "↓": "v", "▸": ">", "▲": "+", "▼": "-", "•": "*", "●": "*", "○": "o", "■": "#",
    "▁": "1", "▂": "2", "▃": "3", "▄": "4", "▅": "5", "▆": "6", "▇": "7", "█": "#", "░": ".",
    "─": "-", "│": "|", "├": "|", "└": "`", "╭": "+", "╮": "+", "╰": "+", "╯": "+",
}  # fmt: skip


_WIDTHS: dict[str, int] = {}  # of texts that are not ASCII: screens ask for the same ones again and again
_MOST_WIDTHS = 2000


class Untrusted(str):
    """Text that a process, a driver or a training program chose: shown as it is, never interpreted as markup."""

    __slots__ = ()


def clean(text: str) -> str:
    """Return text with every control, format and bidirectional character written out, so that a name cannot act on a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else _written(char) for char in text)


def masked(url: str) -> str:
    """Return a URL as it may be shown: user, path and query are often the secret itself, and all of a URL for Apprise may be."""
    scheme, found, rest = url.partition("://")
    if not found or scheme.startswith("apprise:"):
        return f"{scheme}://***" if found else "***"
    place, *more = rest.replace("?", "/").replace("#", "/").split("/", 1)
    return f"{scheme}://{place.rpartition('@')[2]}" + ("/***" if more and more[0] else "")


def ascii_text(text: str) -> str:
    """Return text in ASCII, for terminals that have nothing else."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else _plain(char) for char in text)


def ascii_only(environ: Mapping[str, str]) -> bool:
    """Tell whether the locale says that the terminal has only ASCII."""
    # Python itself uses UTF-8 with LANG=C (PEP 538), but whoever set it said what the terminal can show.
    return (environ.get("LC_ALL") or environ.get("LANG")) in ("C", "POSIX")


def width(text: str) -> int:
    """Return how many terminal cells a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    found = _WIDTHS.get(text)
    if found is None:
        if len(_WIDTHS) > _MOST_WIDTHS:
            _WIDTHS.clear()
        found = _WIDTHS[text] = sum(map(_cells, text))
    return found


def _cells(char: str) -> int:
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


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


def wrap(text: str, cells: int) -> list[str]:
    """Return text as lines of at most `cells`, broken at spaces; a word stays whole, even one that is longer."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width(lines[-1]) + 1 + width(word) > cells:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def fit_name(text: str, cells: int, more: str = "…") -> str:
    """Return text cut to at most `cells`, but never within a number: part of a job id or user id would be another one."""
    cut = fit(text, cells, more)
    kept = cut.removesuffix(more)
    if cut == text or not kept[-1:].isdigit() or not text[len(kept) : len(kept) + 1].isdigit():
        return cut
    return kept.rstrip("0123456789.") + more


def pad(text: str, cells: int, right: bool = False) -> str:
    """Return text filled with spaces to `cells`; `right` puts the text at the right end."""
    space = " " * max(0, cells - width(text))
    return space + text if right else text + space


def column_widths(rows: Sequence[Sequence[str]], least: int = 0) -> list[int]:
    """Return the cells that each column of a table takes, at least `least`."""
    return [max(least, *(width(row[at]) for row in rows)) for at in range(len(rows[0]))]


def without_empty(rows: Sequence[Sequence[str]], empty: str = "–") -> list[tuple[str, ...]]:
    """Return a table, whose first row has the titles, without the columns in which no row has anything."""
    columns = [column for column in zip(*rows, strict=True) if any(cell != empty for cell in column[1:])]
    return [*zip(*columns, strict=True)]


def aligned(
    rows: Sequence[Sequence[str]], left: int = 1, right: Sequence[bool] | None = None, lead: str = ""
) -> list[str]:
    """Return rows as aligned lines. The first `left` columns are flush left, the others flush right; `right` says it per column."""
    widths = column_widths(rows)
    sides = [at >= left for at in range(len(widths))] if right is None else right
    return [
        lead + "  ".join(pad(text, room, side) for text, room, side in zip(row, widths, sides, strict=True)).rstrip()
        for row in rows
    ]


def _plain(char: str) -> str:
    if char in _ASCII:
        return _ASCII[char]
    if not char.isprintable():
        return _written(char)
    import unicodedata

    base = "".join(part for part in unicodedata.normalize("NFD", char) if part.isascii())
    return base or "?" * width(char)


def _written(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
