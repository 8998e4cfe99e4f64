"""Text from processes and boards cannot act on a terminal, and is measured and cut in cells."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpulse
from gpulse.present.text import ascii_text, clean, fit, masked, pad, width

_TEXTS = st.text(max_size=30) | st.text("ab漢字e\u0301\u0302한👍…", max_size=30)


def test_every_character_that_could_act_is_written_out() -> None:
    acting = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]
    assert len(acting) > 2000
    assert all(clean(char).isascii() and clean(char).startswith("\\") for char in acting)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("\U000e0041", "\\U000e0041"),
        ("plain", "plain"),
        ("größe 漢字", "größe 漢字"),
        ("", ""),
    ],
)
def test_what_could_act_is_shown_as_its_number_and_the_rest_as_it_is(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(text=st.text())
def test_clean_text_is_printable_and_stays_clean(text: str) -> None:
    shown = clean(text)
    assert shown.isprintable()
    assert clean(shown) == shown
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("abc", 3),
        ("é", 1),
        ("e\u0301", 1),
        ("漢字", 4),
        ("한", 2),
        ("👍", 2),
        ("…█·°", 4),
        ("Ａ", 2),
        ("กำ", 2),
    ],
)
def test_wide_characters_take_two_cells_and_combining_ones_none(text: str, cells: int) -> None:
    assert width(text) == cells


@given(text=_TEXTS, cells=st.integers(0, 40), more=st.sampled_from(["…", "~", ""]))
def test_a_text_that_was_fitted_fits(text: str, cells: int, more: str) -> None:
    assert width(fit(text, cells, more)) <= cells


@given(text=_TEXTS, cells=st.integers(1, 40))
def test_a_text_that_fits_stays_and_one_that_does_not_ends_in_the_mark(text: str, cells: int) -> None:
    fitted = fit(text, cells)
    if width(text) <= cells:
        assert fitted == text
    else:
        assert fitted.endswith("…")
        assert text.startswith(fitted.removesuffix("…"))
        assert width(fitted) >= cells - 1


def test_less_than_no_room_is_no_room() -> None:
    assert fit("abc", -3) == ""


@given(text=_TEXTS, cells=st.integers(0, 60), right=st.booleans())
def test_a_padded_text_fills_its_cells(text: str, cells: int, right: bool) -> None:
    padded = pad(text, cells, right)
    assert width(padded) == max(cells, width(text))
    assert padded.endswith(text) if right else padded.startswith(text)


def test_every_character_that_gpulse_writes_has_a_form_in_ascii() -> None:
    folder = Path(gpulse.__file__).parent
    own = {char for path in folder.rglob("*.py") for char in path.read_text(encoding="utf-8") if not char.isascii()}
    bars = {char for char in own if "▉" <= char <= "▏"}  # parts of a bar, which a theme draws in ASCII
    for char in own - bars:
        assert "?" not in ascii_text(char), char


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", "https://hooks.slack.com/***"),
        ("https://ada:pw@example.org:8443/a", "https://example.org:8443/***"),
        ("https://example.org?token=x", "https://example.org/***"),
        ("https://example.org#x", "https://example.org/***"),
        ("https://example.org", "https://example.org"),
        ("https://example.org/", "https://example.org"),
        ("apprise:slack://T0/B0/x", "apprise:slack://***"),
        ("apprise:mailto://ada:pw@example.org", "apprise:mailto://***"),
        ("apprise:x", "***"),
        ("x", "***"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_foreign_text_in_ascii_keeps_its_letters_and_its_width() -> None:
    assert ascii_text("Zoë's élan, 漢字, ½") == "Zoe's elan, ????, ?"
    assert ascii_text("\x1b[2J\u202eé\udcff") == "\x1b[2J\\u202ee\\udcff"


@given(st.text())
def test_ascii_is_ascii(text: str) -> None:
    assert ascii_text(text).isascii()
