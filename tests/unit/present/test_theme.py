"""A theme draws with what the terminal has, and never more."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.present.text import width
from gpulse.present.theme import THEMES, TRUE_COLOR, Theme

_STYLES = (
    "title", "label", "faint", "track", "good", "busy", "calm", "memory", "user", "warn", "critical", "accent",
    "selected", "border", "chart1", "chart2", "chart3", "chart4", "loud",
)  # fmt: skip
_QUIET = ("faint", "track", "border")  # to be seen, not read
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)
_ON_BACKGROUNDS = [("dark", False), ("light", True), *((name, light) for name in ("auto", "neutral", "contrast", "blind", "mono")
                                                       for light in (False, True))]  # fmt: skip


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


def test_without_colours_nothing_is_painted() -> None:
    assert {Theme(0).paint("text", style) for style in _STYLES} == {"text"}


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("colors", [16, 256, TRUE_COLOR])
def test_a_colour_ends_where_its_text_does(colors: int, name: str) -> None:
    theme = Theme(colors, name=name)
    for style in _STYLES:
        painted = theme.paint("text", style)
        assert painted == "text" or (painted.startswith("\x1b[") and painted.endswith("text\x1b[0m")), style
        assert theme.paint("", style) == "", style


@pytest.mark.parametrize("name", [name for name in THEMES if name != "mono"])
def test_a_terminal_is_sent_only_the_colours_it_has(name: str) -> None:
    sent = {
        colors: [Theme(colors, name=name).paint("x", style) for style in _STYLES] for colors in (16, 256, TRUE_COLOR)
    }
    assert not any("8;5;" in text or "8;2;" in text for text in sent[16])
    assert any("38;5;" in text for text in sent[256])
    assert not any("8;2;" in text for text in sent[256])
    assert any("38;2;" in text for text in sent[TRUE_COLOR])
    assert not any("8;5;" in text or "#" in text for text in sent[TRUE_COLOR])


def test_an_unknown_style_is_plain() -> None:
    assert Theme(256).paint("x", "sparkling") == "x"


@pytest.mark.parametrize("colors", [16, 256, TRUE_COLOR])
def test_mono_has_weight_and_reverse_but_no_colour(colors: int) -> None:
    codes = {style: _codes(Theme(colors, name="mono"), style) for style in _STYLES}
    assert {code for found in codes.values() for code in found} <= {1, 2, 7}
    assert 7 in codes["selected"]
    assert 7 in codes["loud"]
    assert len({tuple(codes[style]) for style in ("calm", "warn", "critical")}) == 3


@pytest.mark.parametrize("name", THEMES)
def test_a_screen_without_colours_still_shows_the_cursor_and_notices(name: str) -> None:
    theme = Theme(0, name=name)
    assert 7 in _codes(theme, "selected")
    assert 7 in _codes(theme, "loud")
    assert theme.switch("selected") != theme.switch("loud")
    assert {code for style in _STYLES for code in _codes(theme, style)} <= {1, 2, 7}


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("colors", [0, 16, 256, TRUE_COLOR])
def test_what_is_serious_never_looks_like_what_is_not(name: str, colors: int) -> None:
    theme = Theme(colors, name=name)
    assert len({theme.switch(style) for style in ("", "warn", "critical", "selected")}) == 4
    assert theme.switch("loud") not in {theme.switch(style) for style in ("", "calm", "selected", "title")}


def test_a_switch_leaves_nothing_of_the_style_before() -> None:
    for theme in (Theme(), Theme(256), Theme(TRUE_COLOR, name="light")):
        assert all(theme.switch(style).startswith("\x1b[0") for style in ("", *_STYLES, "sparkling"))


@pytest.mark.parametrize(
    ("name", "hint"), [("drak", "did you mean 'dark'?"), ("Light", "light"), ("zzz", "choose one of")]
)
def test_an_unknown_theme_is_a_usage_error_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="unknown theme") as caught:
        Theme(256, name=name)
    assert hint in str(caught.value)
    assert all(known in str(caught.value) for known in THEMES)


@pytest.mark.parametrize("colors", [256, TRUE_COLOR])
@pytest.mark.parametrize(("name", "light"), _ON_BACKGROUNDS)
def test_text_stands_out_from_its_background(name: str, light: bool, colors: int) -> None:
    """As WCAG counts: 4.5 for text, 3 for dim text and lines, and 7 for all text of the high-contrast theme."""
    theme = Theme(colors, name=name, background="light" if light else "dark")
    for style in _STYLES:
        least = 3.0 if style in _QUIET else 7.0 if name == "contrast" else 4.5
        if name == "neutral" and colors == 256:
            least = min(least, 4.0)  # no bright color of the 256 has 4.5 on both black and white
        assert _contrast(*_seen(theme, style, _WHITE if light else _BLACK)) >= least, style


@pytest.mark.parametrize("colors", [256, TRUE_COLOR])
@pytest.mark.parametrize(("name", "light"), _ON_BACKGROUNDS)
def test_text_can_be_read_on_usual_backgrounds_too(name: str, light: bool, colors: int) -> None:
    """Few terminals are black or white: #1e1e1e and #fdf6e3 are the backgrounds of widespread color schemes."""
    theme = Theme(colors, name=name, background="light" if light else "dark")
    behind = (253, 246, 227) if light else (30, 30, 30)
    assert [style for style in _STYLES if _contrast(*_seen(theme, style, behind)) < 3.0] == []


@pytest.mark.parametrize("name", [name for name in THEMES if name != "contrast"])
@pytest.mark.parametrize("colors", [16, 256, TRUE_COLOR])
def test_values_have_the_foreground_that_the_user_chose(name: str, colors: int) -> None:
    assert Theme(colors, name=name).paint("71 %", "calm") == "71 %"


@pytest.mark.parametrize(("background", "as_name"), [("dark", "dark"), ("light", "light"), ("", "neutral")])
def test_auto_follows_the_background(background: str, as_name: str) -> None:
    theme = Theme(256).named("auto").on(background)
    assert [theme.switch(style) for style in _STYLES] == [Theme(256, name=as_name).switch(style) for style in _STYLES]


@pytest.mark.parametrize("name", ["dark", "light", "neutral", "mono"])
def test_a_named_theme_is_the_same_on_every_background(name: str) -> None:
    themes = [Theme(256, name=name, background=background) for background in ("", "dark", "light")]
    assert len({tuple(theme.switch(style) for style in _STYLES) for theme in themes}) == 1


@pytest.mark.parametrize("colors", [16, 256, TRUE_COLOR])
@pytest.mark.parametrize("background", ["dark", "light"])
def test_severity_needs_no_eye_for_colour_in_the_blind_theme(colors: int, background: str) -> None:
    theme = Theme(colors, name="blind", background=background)
    weights = {style: set(_codes(theme, style)) & {1, 4} for style in _STYLES}
    assert weights["calm"] == weights["good"] == weights["busy"] == weights["memory"] == set()
    assert weights["warn"] == {1}
    assert weights["critical"] == {1, 4}


@pytest.mark.parametrize("colors", [256, TRUE_COLOR])
@pytest.mark.parametrize("background", ["dark", "light"])
def test_charts_differ_for_people_who_see_no_red_or_no_green(colors: int, background: str) -> None:
    theme = Theme(colors, name="blind", background=background)
    charts = [_seen(theme, f"chart{at}")[0] for at in (1, 2, 3, 4)]
    for eye in (_PROTANOPIA, _DEUTERANOPIA):
        seen = [tuple(sum(map(float.__mul__, row, map(float, color))) for row in eye) for color in charts]
        for at, one in enumerate(seen):
            for other in seen[at + 1 :]:
                assert max(abs(a - b) for a, b in zip(one, other, strict=True)) >= 64


# What is left of red, green and blue without one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1).
_PROTANOPIA = (
    (0.152286, 1.052583, -0.204868),
    (0.114503, 0.786281, 0.099216),
    (-0.003882, -0.048116, 1.051998),
)
_DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)


def _codes(theme: Theme, style: str) -> list[int]:
    """Return the numbers of a style, the reset at its beginning left out."""
    return [int(code) for code in theme.switch(style)[2:-1].split(";")][1:]


def _seen(theme: Theme, style: str, behind: tuple[int, ...] = _BLACK) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the colors of the text and of what is behind it, on a background."""
    text = _BLACK if _luminance(behind) > 0.18 else _WHITE
    colors: dict[int, tuple[int, ...]] = {38: text, 48: behind}
    codes = _codes(theme, style)
    swapped = False
    while codes:
        code = codes.pop(0)
        if code in (38, 48):
            kind = codes.pop(0)
            colors[code] = _indexed(codes.pop(0)) if kind == 5 else (codes.pop(0), codes.pop(0), codes.pop(0))
        elif code == 7:
            swapped = True
        elif code == 2:  # terminals dim to about two thirds
            colors[38] = tuple(round(2 / 3 * a + 1 / 3 * b) for a, b in zip(colors[38], colors[48], strict=True))
    return (colors[48], colors[38]) if swapped else (colors[38], colors[48])


def _indexed(index: int) -> tuple[int, ...]:
    """Return a colour of the 256 that are the same everywhere: the first 16 belong to the user."""
    assert index >= 16
    if index >= 232:
        return (8 + 10 * (index - 232),) * 3
    steps = (0, 95, 135, 175, 215, 255)
    return steps[(index - 16) // 36], steps[(index - 16) // 6 % 6], steps[(index - 16) % 6]


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    dark, bright = sorted((_luminance(one), _luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def _luminance(color: tuple[int, ...]) -> float:
    parts = [share / 12.92 if (share := part / 255) <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for part in color]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
