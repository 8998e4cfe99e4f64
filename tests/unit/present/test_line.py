"""A line is laid out in cells and coloured last, so colours never move anything."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gpulse.present.line import Line
from gpulse.present.text import clean, width
from gpulse.present.theme import Theme

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PIECES = st.lists(
    st.tuples(st.text(max_size=15).map(clean), st.sampled_from(["", "title", "warn"]), st.none() | st.integers(0, 20)),
    max_size=6,
)


def _line(pieces: list[tuple[str, str, int | None]]) -> Line:
    line = Line()
    for text, style, cells in pieces:
        line.add(text, style, cells)
    return line


@given(pieces=_PIECES, columns=st.integers(0, 60), colors=st.sampled_from([0, 16, 256]))
def test_no_line_is_wider_than_the_terminal(
    pieces: list[tuple[str, str, int | None]], columns: int, colors: int
) -> None:
    assert width(_ANSI.sub("", _line(pieces).render(Theme(colors), columns))) <= columns


@given(pieces=_PIECES)
def test_colours_change_nothing_but_colour(pieces: list[tuple[str, str, int | None]]) -> None:
    line = _line(pieces)
    assert _ANSI.sub("", line.render(Theme(256), 40)).rstrip() == line.render(Theme(0), 40)


@given(pieces=_PIECES)
def test_a_line_knows_its_width(pieces: list[tuple[str, str, int | None]]) -> None:
    line = _line(pieces)
    assert line.width == sum(width(text) for text, _ in line.pieces)


def test_pieces_are_cut_filled_and_aligned() -> None:
    line = Line().add("abcdef", cells=4).add("x", cells=3, right=True).to(10).add("|")
    assert line.render(Theme(), 80) == "abc…  x   |"


def test_without_unicode_the_cut_is_marked_in_ascii() -> None:
    assert Line().add("abcdef").render(Theme(0, False), 4) == "abc~"
    assert Line().add("abcdef", cells=4).render(Theme(0, False), 80).isascii()


def test_a_line_extended_has_the_pieces_of_both() -> None:
    line = Line().add("a").extend(Line().add("b", "warn"))
    assert (line.width, line.pieces) == (2, [("a", ""), ("b", "warn")])


def test_without_colours_no_space_stands_at_the_end() -> None:
    assert Line().add("a", cells=9).render(Theme(), 80) == "a"
