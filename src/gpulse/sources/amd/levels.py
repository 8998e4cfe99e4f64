"""The clock levels of amdgpu: `pp_dpm_sclk` and its like, with a star at the level in force."""

from __future__ import annotations

from ..drm.cards import LANES, generation


class Level:
    """One line: `0: 500Mhz *`; `current` is True for the line with the star. A deep-sleep level is called S instead of a number."""

    __slots__ = ("current", "text")

    def __init__(self, text: str, current: bool) -> None:
        self.text = text
        self.current = current

    @property
    def megahertz(self) -> float | None:
        """The clock in MHz, or None."""
        return next((_leading(word) for word in self.text.split() if word.lower().endswith("mhz")), None)


def parse_levels(text: str | None) -> list[Level]:
    """Return the levels of a file; lines in any other shape are skipped."""
    levels = []
    for line in (text or "").splitlines():
        name, colon, rest = line.partition(":")
        if colon and (name.strip() == "S" or name.strip().isdecimal()):
            levels.append(Level(rest.replace("*", "").strip(), "*" in rest))
    return levels


def current_clock(text: str | None) -> float | None:
    """Return the clock of the level in force in MHz; of several stars the last counts, without a star there is none."""
    stars = [level.megahertz for level in parse_levels(text) if level.current]
    return stars[-1] if stars else None


def highest_clock(text: str | None) -> float | None:
    """Return the highest clock of all levels in MHz."""
    return max((clock for level in parse_levels(text) if (clock := level.megahertz) is not None), default=None)


def current_link(text: str | None) -> tuple[int | None, int | None]:
    """Return generation and lanes of the level in force of `pp_dpm_pcie`: `1: 16.0GT/s, x16 619Mhz *`."""
    stars = [level for level in parse_levels(text) if level.current]
    return _link(stars[-1].text) if stars else (None, None)


def highest_link(text: str | None) -> tuple[int | None, int | None]:
    """Return generation and lanes of the fastest level of `pp_dpm_pcie`."""
    levels = parse_levels(text)
    return _link(levels[-1].text) if levels else (None, None)


def _link(text: str) -> tuple[int | None, int | None]:
    speed, lanes = None, None
    for word in text.replace(",", " ").split():
        if word.endswith("GT/s"):
            rate = _leading(word)
            speed = None if rate is None else generation(rate)
        elif word.startswith("x") and word[1:].isdecimal():
            lanes = int(word[1:]) if word[1:].isascii() and len(word) < 5 and int(word[1:]) in LANES else None
    return speed, lanes


def _leading(word: str) -> float | None:
    """Return the number a word begins with."""
    digits = word[: len(word) - len(word.lstrip("0123456789."))]
    try:
        return float(digits)
    except ValueError:
        return None
