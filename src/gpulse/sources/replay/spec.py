"""Parse FILE, FILE@START, FILE*SPEED or FILE@START*SPEED."""

from __future__ import annotations

import os

from ...errors import UsageError
from ...units import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_NORMAL: float | None = 1.0


def parse_spec(spec: str) -> tuple[str, float, float | None]:
    """Return path, start in seconds and speed (None: every line); raise UsageError for a wrong part."""
    path, pace = spec, _NORMAL
    for path, pace in _without_speed(spec):
        if os.path.exists(path):
            return path, 0.0, pace
        before, at, start = path.rpartition("@")
        if at and os.path.exists(before) and "*" not in start:
            return before, parse_duration(start), pace
    before, at, start = path.rpartition("@")
    return (before, parse_duration(start), pace) if at else (path, 0.0, pace)


def _without_speed(spec: str) -> Iterator[tuple[str, float | None]]:
    """Yield the whole text as a path, since a name may contain any character, then the text split at its last * into path and speed."""
    yield spec, _NORMAL
    rest, star, speed = spec.rpartition("*")
    if not star:
        return
    try:
        pace = None if speed == "max" else float(speed)
        if pace is not None and not 0 < pace < float("inf"):
            raise ValueError
    except ValueError:
        raise UsageError(f"{speed!r} is not a speed;", "write it as replay:FILE*4 or replay:FILE*max.") from None
    yield rest, pace
