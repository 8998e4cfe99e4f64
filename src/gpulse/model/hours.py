"""Hours of the week, as people write them: 22:00-07:00, Mon-Fri 09:00-18:00, Sat,Sun."""

from __future__ import annotations

import re
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM = re.compile(r"(?:([a-z,\- ]+?)\s*)?(?:\b(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d))?", re.ASCII)
_DAY = 1440  # minutes
_EXAMPLE = "hours such as 22:00-07:00, Mon-Fri 09:00-18:00 or Sat,Sun"


class Hours:
    """A part of each week, in local time. One that ends before it begins lasts until the next day, and its days are those it begins on."""

    __slots__ = ("_days", "_end", "_start", "text")

    def __init__(self, text: str) -> None:
        """Read hours; raise ValueError saying what they should be."""
        found = _FORM.fullmatch(text.strip().lower())
        if found is None or not text.strip():
            raise ValueError(_EXAMPLE)
        self.text = text.strip()
        self._days = _days(found[1] or "mon-sun")
        numbers = [int(part) for part in found.groups()[1:] if part is not None] or [0, 0, 24, 0]
        self._start, self._end = numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3]
        if max(numbers[1], numbers[3]) > 59 or max(self._start, self._end) > _DAY or self._start == self._end:
            raise ValueError(_EXAMPLE)

    def contain(self, moment: float) -> bool:
        """Tell whether a time, in seconds since 1970, lies in these hours."""
        local = time.localtime(moment)
        day, minute = local.tm_wday, local.tm_hour * 60 + local.tm_min
        if self._start < self._end:
            return day in self._days and self._start <= minute < self._end
        return (day in self._days and minute >= self._start) or ((day - 1) % 7 in self._days and minute < self._end)


def within(hours: Iterable[Hours], moment: float) -> bool:
    """Tell whether a time lies in any of some hours."""
    return any(one.contain(moment) for one in hours)


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (word.strip()[:3] for word in part.partition("-"))
        if first not in _DAYS or (dash and last not in _DAYS):
            raise ValueError(_EXAMPLE)
        start, end = _DAYS.index(first), _DAYS.index(last if dash else first)
        found.update((start + at) % 7 for at in range((end - start) % 7 + 1))
    return frozenset(found)
