"""Clock and link levels as amdgpu writes them: one star, two, none, deep sleep, and nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.sources.amd.readers import current_clock, current_link, highest_clock, highest_link


@pytest.mark.parametrize(
    ("text", "current", "highest"),
    [
        ("0: 500Mhz \n1: 800Mhz *\n2: 2660Mhz \n", 800.0, 2660.0),
        ("S: 19Mhz *\n0: 500Mhz \n1: 2500Mhz \n", 19.0, 2500.0),
        ("0: 167Mhz *\n1: 500Mhz *\n", 500.0, 500.0),
        ("0: 400Mhz \n1: 800Mhz \n", None, 800.0),
        ("", None, None),
        (None, None, None),
        ("OD_SCLK:\n0: 500Mhz\n", None, 500.0),
        ("nonsense *\n1: Mhz *\n", None, None),
    ],
)
def test_clocks(text: str | None, current: float | None, highest: float | None) -> None:
    assert (current_clock(text), highest_clock(text)) == (current, highest)


@pytest.mark.parametrize(
    ("text", "current", "highest"),
    [
        ("0: 2.5GT/s, x1 310Mhz \n1: 16.0GT/s, x16 619Mhz *\n", (4, 16), (4, 16)),
        ("0: 8.0GT/s, x16 *\n1: 8.0GT/s, x16 *\n", (3, 16), (3, 16)),
        ("0: 2.5GT/s, x8 *\n1: 8.0GT/s, x16 \n", (1, 8), (3, 16)),
        ("", (None, None), (None, None)),
        (f"0: 9.9GT/s, x{'9' * 5000} *\n", (None, None), (None, None)),
    ],
)
def test_links(text: str, current: tuple[int | None, int | None], highest: tuple[int | None, int | None]) -> None:
    assert (current_link(text), highest_link(text)) == (current, highest)


@settings(deadline=None)
@given(st.text(alphabet="0123456789:.xSMhzGT/s,* \n²٣", max_size=200))
def test_no_text_raises(text: str) -> None:
    current_clock(text)
    highest_clock(text)
    current_link(text)
    highest_link(text)
