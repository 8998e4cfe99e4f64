"""A theme draws with what the terminal has, and never more."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.present.text import width
from gpulse.present.theme import Theme

_STYLES = ("title", "label", "faint", "track", "good", "busy", "calm", "memory", "user", "warn", "critical", "accent")


@example(share=0.5, cells=0, unicode=True)
@given(share=st.none() | st.floats(-1, 3), cells=st.integers(0, 60), unicode=st.booleans())
def test_a_bar_takes_exactly_its_cells(share: float | None, cells: int, unicode: bool) -> None:
    filled, empty = Theme(0, unicode).bar(share, cells)
    assert width(filled) + width(empty) == cells


@given(one=st.floats(0, 1), other=st.floats(0, 1), unicode=st.booleans())
def test_a_larger_share_is_never_a_shorter_bar(one: float, other: float, unicode: bool) -> None:
    lengths = [len(Theme(0, unicode).bar(share, 20)[0]) for share in sorted((one, other))]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(
    ("share", "filled", "empty"),
    [
        (0.0, "", "····"),
        (None, "", "····"),
        (0.5, "██", "··"),
        (1.0, "████", ""),
        (7.0, "████", ""),
        (0.001, "▏", "···"),
        (0.375, "█▌", "··"),
    ],
)
def test_bars_are_drawn_in_eighths_and_something_is_never_nothing(share: float | None, filled: str, empty: str) -> None:
    assert Theme().bar(share, 4) == (filled, empty)


@given(share=st.none() | st.floats(0, 1), cells=st.integers(1, 60))
def test_without_unicode_everything_is_ascii(share: float | None, cells: int) -> None:
    theme = Theme(0, False)
    assert all(part.isascii() for part in theme.bar(share, cells))
    assert theme.more.isascii()
    assert theme.glyph("°", "o") == "o"


@pytest.mark.parametrize("style", _STYLES)
def test_without_colours_nothing_is_painted(style: str) -> None:
    assert Theme(0).paint("text", style) == "text"


@pytest.mark.parametrize("colors", [16, 256])
@pytest.mark.parametrize("style", _STYLES)
def test_a_colour_ends_where_its_text_does(style: str, colors: int) -> None:
    painted = Theme(colors).paint("text", style)
    assert painted == "text" or (painted.startswith("\x1b[") and painted.endswith("text\x1b[0m"))
    assert Theme(colors).paint("", style) == ""


def test_sixteen_colours_use_none_of_the_others() -> None:
    assert not any("38;5" in Theme(16).paint("x", style) for style in _STYLES)
    assert any("38;5" in Theme(256).paint("x", style) for style in _STYLES)


def test_an_unknown_style_is_plain() -> None:
    assert Theme(256).paint("x", "sparkling") == "x"
