"""Parse nvidia-smi's texts: numbers with units, switches, and the various texts for a missing value."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias
    from xml.etree.ElementTree import Element

    from ...model.metric import Gap, Value

    Reading: TypeAlias = "tuple[Value | None, Gap]"

_FACTORS = {
    "": 1, "%": 1, "C": 1, "W": 1, "MHz": 1, "x": 1, "MiB": 1 << 20, "KiB": 1 << 10, "GiB": 1 << 30, "B": 1, "mJ": 1e-3, "J": 1,
    "KB/s": 1e3, "MB/s": 1e6, "us": 1, "RPM": 1,
}  # fmt: skip
_LONGEST = 25  # digits; int() refuses thousands of them with an exception
_SWITCHES = {"Enabled": True, "Disabled": False, "Yes": True, "No": False, "On": True, "Off": False}


def text_at(element: Element, paths: Iterable[str]) -> str:
    """Return the text at the first of these paths that has any."""
    for path in paths:
        found = element.find(path)
        if found is not None and (text := (found.text or "").strip()):
            return text
    return ""


def gap_of(text: str) -> Gap:
    """Return why a text is not a value."""
    lowered = text.lower()
    if "lost" in lowered or "requires reset" in lowered:
        return "lost"
    if "permission" in lowered:
        return "denied"
    if not lowered or "deprecated" in lowered or lowered.strip("[]") in ("n/a", "not supported", "none", "not found"):
        return "unsupported"
    return "failed"


def number(text: str) -> Reading:
    """Read a number with its unit into ours: bytes, W, °C, MHz, per cent, bytes per second."""
    word = text[: len(text) - len(text.lstrip("0123456789."))] if text[:1] != "-" else ""
    factor = _FACTORS.get(text[len(word) :].strip())
    if not word or factor is None or word.count(".") > 1 or word == "." or len(word) > _LONGEST:
        return None, gap_of(text) if not word else "failed"
    plain = float(word) if "." in word else int(word)
    value = plain * factor
    return (round(value) if isinstance(plain, int) and isinstance(value, float) else value), "unsupported"


def state(text: str) -> Reading:
    """Read a performance state: P8 is 8."""
    digits = text.removeprefix("P")
    return (
        (int(digits), "unsupported")
        if digits.isascii() and digits.isdecimal() and digits != text and len(digits) < 3
        else (None, gap_of(text))
    )


def switch(text: str) -> Reading:
    """Read Enabled, Disabled, Yes or No."""
    return (_SWITCHES[text], "unsupported") if text in _SWITCHES else (None, gap_of(text))


def word(text: str) -> Reading:
    """Read a mode as a word of ours: Exclusive_Process is exclusive_process."""
    gap = gap_of(text)
    return (text.lower(), gap) if gap == "failed" and text.replace("_", "").isalpha() else (None, gap)


def plain(text: str) -> Reading:
    """Read a text as it is; N/A is none."""
    gap = gap_of(text)
    return (text, gap) if gap == "failed" else (None, gap)
