"""Words for GPUs: names, ranges of labels, who uses them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.diagnosis.rules import RULES
from gpulse.model.catalog import Gpu, Process
from gpulse.model.condition import CONDITIONS
from gpulse.present.cells import THROTTLE
from gpulse.present.text import width
from gpulse.present.theme import Theme
from gpulse.present.words import NARROWEST, gpus_text, narrow, notes_and_owners, product_name, ranges


def test_numbers_in_a_row_are_a_range() -> None:
    assert ranges(["0", "1", "2", "3", "6", "7"]) == "0-3, 6, 7"
    assert ranges(["MIG-x", "2"]) == "MIG-x, 2"
    assert gpus_text(["4"]) == "GPU 4"
    assert gpus_text(["0", "1", "2"]) == "GPUs 0-2"


def test_a_product_name_is_short_and_harmless() -> None:
    assert product_name("NVIDIA GeForce RTX 4090") == "RTX 4090"
    assert product_name("NVIDIA H200\x1b[2J") == "H200\\x1b[2J"


def _gpu(*held: tuple[str, float]) -> Gpu:
    people = tuple(
        Process({"pid": 1 + at, "user": user, "name": "python", "memory_used": size})
        for at, (user, size) in enumerate(held)
    )
    return Gpu({"memory_used": 80.0 * 2**30}, processes=people)


@pytest.mark.parametrize(
    ("held", "room", "text"),
    [
        ((("ada", 80 * 2**30),), 40, "ada python"),
        ((("ada", 20 * 2**30),), 40, "ada python 20.0 GiB"),
        (
            (("ada", 30 * 2**30), ("ada", 10 * 2**30), ("noor", 40 * 2**30 - 1)),
            60,
            "ada python ×2 40.0 GiB  noor python 40.0 GiB",
        ),
        ((("ada", 50 * 2**30), ("noor", 30 * 2**30)), 24, "ada python 50.0 GiB  +1"),
        ((("ada", 50 * 2**30), ("noor", 30 * 2**30)), 7, "ada  +1"),
    ],
)
def test_owners_are_named_as_far_as_there_is_room(held: tuple[tuple[str, float], ...], room: int, text: str) -> None:
    assert "".join(piece for piece, _ in notes_and_owners(_gpu(*held), (), room, Theme())).rstrip() == text


def test_every_verdict_and_throttle_reason_has_a_form_for_narrow_columns() -> None:
    for words in (*(CONDITIONS[rule.key].title for rule in RULES), *THROTTLE.values()):
        assert width(narrow(words)) <= NARROWEST, words


_NOTES = (
    ("power cap", "label", "power cap"),
    ("healthy", "good", "healthy"),
    ("memory held, idle", "warn", "held idle"),
    ("1155 MHz too hot", "critical", "too hot"),
)


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (70, "power cap  healthy  memory held, idle  1155 MHz too hot  noor  tove"),
        (60, "power cap  healthy  held idle  too hot  noor python  tove"),
        (42, "power cap  held idle  too hot  noor  tove"),
        (30, "too hot  held idle  noor  tove"),
        (17, "too hot  noor  +1"),
        (12, "too hot  +2"),
        (8, "too hot"),
        (5, "+2"),
    ],
)
def test_notes_get_narrower_and_fewer_but_are_never_cut(room: int, text: str) -> None:
    gpu = _gpu(("noor", 50 * 2**30), ("tove", 30 * 2**30))
    assert "".join(piece for piece, _ in notes_and_owners(gpu, _NOTES, room, Theme())).rstrip() == text


@given(
    st.integers(0, 80), st.lists(st.text("abc漢1.", min_size=1, max_size=20), max_size=3), st.sets(st.integers(0, 3))
)
def test_notes_and_owners_never_take_more_than_their_room(room: int, users: list[str], chosen: set[int]) -> None:
    gpu = _gpu(*((user, 2.0**30 * (at + 1)) for at, user in enumerate(users)))
    pieces = notes_and_owners(gpu, [_NOTES[at] for at in chosen], room, Theme())
    shown = "".join(text for text, _ in pieces).rstrip()
    assert width(shown) <= room
    assert not any(note[2][:-1] + "…" in shown for note in _NOTES)
