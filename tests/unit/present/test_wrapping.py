"""Styled text broken into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulse.present.line import wrapped_lines
from gpulse.present.text import width, wrap

_PIECES = st.lists(st.tuples(st.text(alphabet="ab 日·", max_size=12), st.sampled_from(["", "label"])), max_size=6)


def test_a_word_of_two_styles_stays_together() -> None:
    lines = wrapped_lines([("held by ", ""), ("ada", "user"), ("'s job", "")], 11)
    assert [line.pieces for line in lines] == [
        [("held by", "")],
        [("ada", "user"), ("'s job", "")],
    ]


@given(_PIECES, st.integers(2, 30))
def test_no_line_is_too_long_and_no_letter_is_lost(pieces: list[tuple[str, str]], columns: int) -> None:
    lines = wrapped_lines(pieces, columns)
    assert all(line.width <= columns for line in lines)
    shown = "".join(text for line in lines for text, _ in line.pieces)
    assert shown.replace(" ", "") == "".join(text for text, _ in pieces).replace(" ", "")


def test_a_heading_keeps_its_words() -> None:
    assert wrap("At power cap", 8) == ["At power", "cap"]
    assert max(map(width, wrap("Utilization", 4))) == 11
