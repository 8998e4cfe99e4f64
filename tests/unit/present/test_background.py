"""Whether a terminal is dark or light."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.present.theme import answered_background, stated_background


@pytest.mark.parametrize(
    ("stated", "background"),
    [
        ("15;0", "dark"),
        ("0;15", "light"),
        ("0;default;15", "light"),
        ("12;8", "dark"),
        ("0;7", "light"),
        ("15;default", ""),
        ("", ""),
        ("0;99", ""),
        ("nonsense", ""),
    ],
)
def test_colorfgbg_is_foreground_and_background(stated: str, background: str) -> None:
    assert stated_background({"COLORFGBG": stated}) == background


def test_without_colorfgbg_it_is_unknown() -> None:
    assert stated_background({}) == ""


@pytest.mark.parametrize(
    ("answer", "background"),
    [
        ("11;rgb:0000/0000/0000", "dark"),
        ("11;rgb:ffff/ffff/ffff", "light"),
        ("11;rgb:fdfd/f6f6/e3e3", "light"),
        ("11;rgb:0000/2b2b/3636", "dark"),
        ("11;rgb:ff/ff/ff", "light"),
        ("11;rgb:f/f/f", "light"),
        ("11;rgba:0000/0000/0000/ffff", "dark"),
        ("11;rgb:0000/0000/ffff", "dark"),
        ("11;rgb:0000/ffff/0000", "light"),
        ("10;rgb:ffff/ffff/ffff", ""),
        ("11;rgb:ffff/ffff", ""),
        ("11;rgb:fffff/0/0", ""),
        ("11;#ffffff", ""),
        ("11;?", ""),
        ("", ""),
    ],
)
def test_the_answer_of_a_terminal(answer: str, background: str) -> None:
    assert answered_background(answer) == background


@given(st.text(max_size=40))
def test_any_answer_is_understood_or_ignored(answer: str) -> None:
    assert answered_background(answer) in ("", "dark", "light")
    assert answered_background(f"11;rgb:{answer}") in ("", "dark", "light")
    assert stated_background({"COLORFGBG": answer}) in ("", "dark", "light")
