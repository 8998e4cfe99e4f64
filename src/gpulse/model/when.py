"""Times as people write them (03:00, yesterday 14:30, 2h ago, 2026-11-15 03:00), and hours of the week (Mon-Fri 09:00-18:00)."""

from __future__ import annotations

import re
import time

from ..errors import RecordingError, UsageError
from ..units import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FORMS = "03:00, 3am, yesterday, 'monday 14:30', '2026-11-15 03:00', RFC 3339, '2h ago' or seconds since 1970"
_DATED = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TWELVE = re.compile(r"(\d{1,2})(?::(\d\d))? ?([ap])\.?m\.?$")
_EPOCH = re.compile(r"\d{9,11}(?:\.\d+)?$")
_DAY = 86_400


def stretch(
    since: str | None, start: str | None, end: str | None, now: float | None = None, default: float = 7200.0
) -> tuple[float, float]:
    """Return the stretch of time that options name, the last two hours by default; raise UsageError when it is none."""
    now = time.time() if now is None else now
    if since is not None and start is not None:
        raise UsageError(
            "a duration and a start time were both given;", "give one of them.", option="give --since or --from."
        )
    last = now if end is None else parse_when(end, now, latest=True)
    first = (
        parse_when(start, now) if start is not None else last - (default if since is None else parse_duration(since))
    )
    if start is not None and end is not None:
        first, last = _in_order(start, first, end, last, now)
    if first >= last:
        raise UsageError(
            "this stretch of time ends before it begins;", "check both times.", option="check --from and --to."
        )
    return first, last


def _in_order(start: str, first: float, end: str, last: float, now: float) -> tuple[float, float]:
    """Return two times of which one may be a time of day, whose day follows from the other."""
    clock = _clock(end.strip().lower())
    if _clock(start.strip().lower()) is not None:
        return (first - _DAY if last < first < last + _DAY else first), last  # from 23:00 to 01:00: the night before
    if clock is None:
        return first, last
    return first, min(_next(clock, first), max(now, first))  # from yesterday 22:00 to 06:00: the first one after that


def _next(clock: Sequence[int], after: float) -> float:
    """Return the first moment after another at which this machine's clock shows a time of day."""
    day = time.localtime(after)[:3]
    found = _by_the_clock((*day, *clock), latest=True)
    noon = time.mktime((*day[:2], day[2] + 1, 12, 0, 0, 0, 0, -1))
    return found if found > after else _by_the_clock((*time.localtime(noon)[:3], *clock), latest=True)


def moment_in(text: str, first: float, after: float | None = None) -> float:
    """Read a time in a recording that begins at `first`: a duration from there (10m), or a time.

    A time of day is the first one from `after` on, by default from the beginning. Raises UsageError for a text that is no time.
    """
    if not _EPOCH.match(text.strip()):
        try:
            return first + parse_duration(text)
        except UsageError:
            pass
    clock = _clock(text.strip().lower())
    return parse_when(text, time.time()) if clock is None else _next(clock, (after or first) - 0.001)


def parse_when(text: str, now: float, latest: bool = False) -> float:
    """Read a time by this machine's clock; without a date it is the last one before `now`.

    A time of the hour that the end of summer time repeats is the first of the two, or the `latest`; so is a whole day its end.
    """
    words = text.strip().lower()
    for form in _DATED:
        try:
            return _by_the_clock(time.strptime(text, form)[:6], latest)
        except (ValueError, OverflowError):
            continue
    if (day := _day(words, now)) is not None:
        return _midnight(day, latest)
    if words == "now":
        return now
    if _EPOCH.match(words):
        return float(words)
    date, _, rest = words.rpartition(" ")
    if (clock := _clock(words)) or ((day := _day(date, now)) is not None and (clock := _clock(rest))):
        found = _by_the_clock((*(day or time.localtime(now)[:3]), *clock), latest)
        if day or found <= now:
            return found
        return _by_the_clock(
            (*time.localtime(found - _DAY)[:3], *clock), latest
        )  # 23:00 asked in the morning is yesterday's
    ago = words.removesuffix("ago").strip() if words.endswith("ago") else words
    if ago[:1].isdecimal() and ago[-1:].isalpha() and not words.endswith("z"):
        return now - parse_duration(ago)
    from .codec import parse_time  # loads json, which settings that only name hours do not need

    try:
        return parse_time(text)
    except RecordingError:
        raise UsageError(f"{text!r} is not a time;", f"write it as {FORMS}.") from None


# How a day, week or month is written, what `datetime` needs after that, and an example.
_CALENDAR = {
    "month": ("%Y-%m", "", "2026-11"),
    "week": ("%G-W%V-%u", "-1", "2026-W46"),
    "day": ("%Y-%m-%d", "", "2026-11-15"),
}


def calendar(word: str, which: str, now: float) -> tuple[float, float]:
    """Return the day, week or month that `which` names: this, last, or as 2026-11-15, 2026-W46, 2026-11; the running one ends now."""
    today = time.localtime(now)
    year, month, day, weekday = *today[:3], today.tm_wday
    back = {"this": 0, "": 0, "last": 1}.get(which.lower())
    if back is None:
        year, month, day = _date(word, which)
        back = weekday = 0
    if word == "month":
        first, after = (_midnight((year, month - back + more, 1)) for more in (0, 1))
    else:
        days = 7 if word == "week" else 1
        start = day - days * back - (weekday if word == "week" else 0)
        first, after = (_midnight((year, month, start + more)) for more in (0, days))
    return first, min(after, now) if first < now else after


def _date(word: str, text: str) -> tuple[int, int, int]:
    from datetime import datetime  # time.strptime knows no ISO weeks

    form, rest, example = _CALENDAR[word]
    try:
        found = datetime.strptime(f"{text}{rest}", form)
    except ValueError:
        raise UsageError(f"{text!r} is not a {word};", f"write it as this, last or {example}.") from None
    return found.year, found.month, found.day


def _day(word: str, now: float) -> tuple[int, int, int] | None:
    """Return the date that a word names: a date, today, yesterday, or a day of the week, which is the last one before today."""
    today = time.localtime(now)
    back = {"today": 0, "yesterday": 1}.get(word)
    if back is None:
        named = [at for at, name in enumerate(_WEEKDAYS) if len(word) >= 3 and name.startswith(word)]
        back = ((today.tm_wday - named[0] - 1) % 7) + 1 if named else None
    if back is not None:
        noon = time.localtime(time.mktime((*today[:2], today[2] - back, 12, 0, 0, 0, 0, -1)))
        return noon[0], noon[1], noon[2]
    try:
        found = time.strptime(word, "%Y-%m-%d")
    except ValueError:
        return None
    return found[0], found[1], found[2]


def _clock(word: str) -> tuple[int, int, int] | None:
    if word in ("noon", "midnight"):
        return (12 if word == "noon" else 0), 0, 0
    if (found := _TWELVE.match(word)) and 1 <= int(found[1]) <= 12 and int(found[2] or 0) < 60:
        return int(found[1]) % 12 + 12 * (found[3] == "p"), int(found[2] or 0), 0
    for form in ("%H:%M:%S", "%H:%M"):
        try:
            read = time.strptime(word, form)
        except ValueError:
            continue
        return read.tm_hour, read.tm_min, read.tm_sec
    return None


def _midnight(day: Sequence[int], latest: bool = False) -> float:
    try:
        return time.mktime((day[0], day[1], day[2] + latest, 0, 0, 0, 0, 0, -1))
    except (ValueError, OverflowError):
        raise UsageError(f"this clock cannot show the year {day[0]};", "name another day.") from None


def _by_the_clock(fields: Sequence[int], latest: bool) -> float:
    """Return when this machine's clock shows a date and time, the first or the latest of two times."""
    shown = [
        found
        for summer in (0, 1)
        if time.localtime(found := time.mktime((*fields, 0, 0, summer)))[:6] == tuple(fields)  # type: ignore[arg-type]
    ]
    guess = time.mktime((*fields, 0, 0, -1))  # type: ignore[arg-type]  # one that the clock leaps over
    return (max(shown) if latest else min(shown)) if shown else guess


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM = re.compile(r"(?:([a-z,\- ]+?)\s*)?(?:\b(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d))?", re.ASCII)
_MINUTES = 1440  # minutes
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
        if max(numbers[1], numbers[3]) > 59 or max(self._start, self._end) > _MINUTES or self._start == self._end:
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
