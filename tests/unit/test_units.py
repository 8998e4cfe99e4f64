"""Sizes and durations in words, both ways."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.units import duration_text, parse_duration, parse_size, size_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (1536 << 20, "1.5 GiB"),
        (999 << 20, "999 MiB"),
        (1000 << 20, "1.0 GiB"),
        (76_432_801_792, "71.2 GiB"),
        (99.96 * (1 << 30), "100 GiB"),
        (1 << 40, "1.0 TiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_sizes_are_written_short(count: float, text: str) -> None:
    assert size_text(count) == text


def test_a_size_beside_a_total_has_its_unit() -> None:
    assert size_text(512 << 20, 80 << 30, unit=False) == "0.5"
    assert size_text(0, 80 << 30) == "0 GiB"
    assert size_text(126 << 30, 1007 << 30) == "126 GiB"


@given(count=st.integers(0, 1000 << 50))
def test_a_size_is_short_and_read_back_to_within_its_digits(count: int) -> None:
    text = size_text(count)
    assert len(text) <= 8
    if not text.endswith("PiB"):
        assert parse_size(text) == pytest.approx(count, rel=0.06, abs=0.5)


@given(count=st.integers(0, 1 << 50), total=st.integers(0, 1 << 50))
def test_a_part_and_its_total_are_in_one_unit(count: int, total: int) -> None:
    assert size_text(count, total).split()[1] == size_text(total, total).split()[1]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("512", 512),
        ("1.5GiB", 1.5 * (1 << 30)),
        ("2kB", 2000),
        ("2KiB", 2048),
        ("300 MB", 300e6),
        ("300mib", 300 << 20),
        (" 2 t ", 2 << 40),
        (".5k", 512),
        ("0", 0),
        ("7 B", 7),
    ],
)
def test_sizes_are_read(text: str, count: float) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (45.9, "45s"),
        (60, "1m00s"),
        (725, "12m05s"),
        (3600, "1h00m"),
        (12000, "3h20m"),
        (86400, "1d00h"),
        (187200, "2d04h"),
        (-5, "0s"),
    ],
)
def test_durations_are_written_in_their_two_largest_parts(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.5", 0.5), ("500ms", 0.5), ("10s", 10), ("5m", 300), ("5 min", 300), ("2h", 7200), ("1d", 86400), (" 3 S ", 3)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@given(seconds=st.integers(0, 10**7))
def test_what_is_written_in_two_parts_is_read_so(seconds: int) -> None:
    written = parse_duration(duration_text(seconds))
    assert written <= seconds < written + (1 if seconds < 3600 else 60 if seconds < 86400 else 3600)


@given(number=st.integers(0, 10**9), word=st.sampled_from(["ms", "", "s", "m", "min", "h", "d"]))
def test_a_duration_grows_with_its_number(number: int, word: str) -> None:
    one = parse_duration(f"1{word}")
    assert parse_duration(f"{number}{word}") == pytest.approx(number * one)


_WRONG = ["", " ", "-1", "+1", "1.2.3", ".", "1e3", "inf", "nan", "x", "1 x", "s", "0x10", "١", "1,5", "9" * 400]


@pytest.mark.parametrize("text", _WRONG)
def test_what_is_no_size_or_duration_is_an_error_that_names_it(text: str) -> None:
    for parse in (parse_size, parse_duration):
        with pytest.raises(UsageError, match="write it as") as caught:
            parse(text)
        assert repr(text) in str(caught.value)


@pytest.mark.parametrize("parse", [parse_size, parse_duration])
@given(text=st.text(max_size=8) | st.from_regex(r"[0-9.]{1,5} ?[a-z]{0,3}", fullmatch=True))
def test_any_text_is_read_or_refused_and_never_negative(parse: Callable[[str], float], text: str) -> None:
    try:
        assert parse(text) >= 0
    except UsageError as error:
        assert repr(text) in str(error)  # noqa: PT017  # either way is right, and each has its own promise
