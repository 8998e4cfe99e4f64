"""Bars that become brighter, only where the terminal can show it."""

from __future__ import annotations

import pytest

from gpulse.present.theme import TRUE_COLOR, Theme


@pytest.mark.parametrize("cells", [1, 7, 24, 80])
def test_every_cell_has_a_color_and_the_last_is_the_styles_own(cells: int) -> None:
    theme = Theme(TRUE_COLOR, name="dark")
    shades = theme.shaded("busy", cells)
    assert shades is not None
    assert len(shades) == cells
    assert all(theme.switch(shade).startswith("\x1b[0;38;2;") for shade in shades)
    if cells >= 8:
        assert theme.switch(shades[-1]) == theme.switch("busy")
        assert theme.switch(shades[0]) != theme.switch("busy")


@pytest.mark.parametrize(("colors", "name"), [(0, "dark"), (16, "dark"), (256, "dark"), (TRUE_COLOR, "mono"),
                                              (TRUE_COLOR, "contrast"), (TRUE_COLOR, "neutral")])  # fmt: skip
def test_no_gradient_without_true_color_or_in_a_theme_made_for_contrast(colors: int, name: str) -> None:
    assert Theme(colors, name=name).shaded("busy", 10) is None


def test_a_style_of_words_and_a_bar_without_cells_have_none() -> None:
    theme = Theme(TRUE_COLOR, name="light")
    assert theme.shaded("faint", 10) is None
    assert theme.shaded("busy", 0) is None
