"""Times as people write them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from gpulse.errors import UsageError
from gpulse.model.when import calendar, moment_in, parse_when, stretch


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


NOW = 1_794_823_200.0  # Monday 2026-11-16 11:00:00 in Berlin


def shown(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("03:00", "2026-11-16 03:00:00"),
        ("23:00", "2026-11-15 23:00:00"),
        ("3am", "2026-11-16 03:00:00"),
        ("3:30 pm", "2026-11-15 15:30:00"),
        ("12am", "2026-11-16 00:00:00"),
        ("noon", "2026-11-15 12:00:00"),
        ("yesterday", "2026-11-15 00:00:00"),
        ("yesterday 14:30", "2026-11-15 14:30:00"),
        ("today 9am", "2026-11-16 09:00:00"),
        ("monday", "2026-11-09 00:00:00"),
        ("Sat 22:00", "2026-11-14 22:00:00"),
        ("2026-11-01 3am", "2026-11-01 03:00:00"),
        ("2026-11-01", "2026-11-01 00:00:00"),
        ("2h ago", "2026-11-16 09:00:00"),
        ("2h", "2026-11-16 09:00:00"),
        ("1w", "2026-11-09 11:00:00"),
        ("1794823200", "2026-11-16 11:00:00"),
        ("2026-11-16T02:30:00Z", "2026-11-16 03:30:00"),
        ("now", "2026-11-16 11:00:00"),
    ],
)
def test_words_are_times(text: str, expected: str) -> None:
    assert shown(parse_when(text, NOW)) == expected


@pytest.mark.parametrize(
    "text", ["", "25:00", "13pm", "0am", "tomorrow", "3", "ago", "yesterday yesterday", "2026-13-01"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a"):
        parse_when(text, NOW)


def test_a_day_ends_at_its_end() -> None:
    first, last = stretch(None, "yesterday", "yesterday", NOW)
    assert (shown(first), shown(last)) == ("2026-11-15 00:00:00", "2026-11-16 00:00:00")


def test_a_night_begins_the_day_before() -> None:
    first, last = stretch(None, "10:00", "06:00", NOW)
    assert (shown(first), shown(last)) == ("2026-11-15 10:00:00", "2026-11-16 06:00:00")


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        ("yesterday 22:00", "06:00", "2026-11-15 22:00:00", "2026-11-16 06:00:00"),
        ("2026-11-10 22:00", "6am", "2026-11-10 22:00:00", "2026-11-11 06:00:00"),
        ("2026-11-10 02:00", "06:00", "2026-11-10 02:00:00", "2026-11-10 06:00:00"),
        ("monday 22:00", "noon", "2026-11-09 22:00:00", "2026-11-10 12:00:00"),
        ("yesterday", "midnight", "2026-11-15 00:00:00", "2026-11-16 00:00:00"),
        ("2h ago", "23:00", "2026-11-16 09:00:00", "2026-11-16 11:00:00"),  # no later than now
        ("2026-10-24 22:00", "02:30", "2026-10-24 22:00:00", "2026-10-25 02:30:00"),  # summer time ends in that night
    ],
)
def test_an_end_without_a_date_is_the_first_one_after_the_start(start: str, end: str, first: str, last: str) -> None:
    assert tuple(map(shown, stretch(None, start, end, NOW))) == (first, last)


def test_the_same_while_that_end_is_still_to_come() -> None:
    night = NOW - 8 * 3600  # 03:00
    first, last = stretch(None, "yesterday 22:00", "06:00", night)
    assert (shown(first), last) == ("2026-11-15 22:00:00", night)


def test_times_in_a_recording_are_read_from_its_beginning() -> None:
    first = parse_when("2026-11-03 21:30", NOW)
    assert moment_in("10m", first) == first + 600
    assert shown(moment_in("22:00", first)) == "2026-11-03 22:00:00"
    assert shown(moment_in("06:00", first, moment_in("22:00", first))) == "2026-11-04 06:00:00"
    assert shown(moment_in("21:30", first)) == "2026-11-03 21:30:00"
    assert moment_in("1700000000", first) == 1_700_000_000.0
    assert shown(moment_in("2026-11-04 03:00", first)) == "2026-11-04 03:00:00"
    with pytest.raises(UsageError, match="'soon' is not a time"):
        moment_in("soon", first)


@pytest.mark.parametrize(
    ("word", "which", "first", "last"),
    [
        ("month", "this", "2026-11-01 00:00:00", "2026-11-16 11:00:00"),
        ("month", "last", "2026-10-01 00:00:00", "2026-11-01 00:00:00"),
        ("month", "2026-03", "2026-03-01 00:00:00", "2026-04-01 00:00:00"),
        ("week", "last", "2026-11-09 00:00:00", "2026-11-16 00:00:00"),
        ("week", "2026-W43", "2026-10-19 00:00:00", "2026-10-26 00:00:00"),
        ("day", "last", "2026-11-15 00:00:00", "2026-11-16 00:00:00"),
        ("day", "2026-10-25", "2026-10-25 00:00:00", "2026-10-26 00:00:00"),
    ],
)
def test_calendars_by_local_time(word: str, which: str, first: str, last: str) -> None:
    start, end = calendar(word, which, NOW)
    assert (shown(start), shown(end)) == (first, last)


def test_a_day_that_has_25_hours_has_them() -> None:
    start, end = calendar("day", "2026-10-25", NOW)
    assert end - start == 25 * 3600
