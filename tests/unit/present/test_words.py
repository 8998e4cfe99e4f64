"""Words for GPUs: names, ranges of labels, who uses them."""

from __future__ import annotations

import pytest

from gpulse.model.catalog import Gpu, Process
from gpulse.present.theme import Theme
from gpulse.present.words import gpus_text, notes_and_owners, product_name, ranges


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
