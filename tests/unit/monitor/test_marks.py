"""The marks of a program: kept as numbers and texts, never as the program's own objects."""

from __future__ import annotations

import gc
import weakref

import numpy
import pytest

from gpulse.monitor.reported import plain
from gpulse.monitor.rhythm import Marks
from gpulse.sampling.clock import SystemClock


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (3, 3),
        (0.5, 0.5),
        (None, None),
        ("best", "best"),
        (True, True),
        (numpy.float32(0.25), 0.25),
        (numpy.float64(0.25), 0.25),
        (numpy.int64(7), 7),
        (numpy.array([0.5]), 0.5),
        ([1, 2], "[1, 2]"),
    ],
)
def test_numbers_stay_numbers(value: object, kept: object) -> None:
    found = plain(value)
    assert found == kept
    assert type(found) is type(kept)


def test_a_tensor_is_a_number_and_not_kept_alive() -> None:
    torch = pytest.importorskip("torch")
    loss = torch.tensor(1.5, requires_grad=True) * 2
    gone = weakref.ref(loss)
    marks = Marks(SystemClock())
    marks.add("loss", loss)
    marks.add("step", torch.tensor(4))
    del loss
    gc.collect()
    assert gone() is None
    assert [(mark.name, mark.value) for mark in marks.new()] == [("loss", 3.0), ("step", 4)]


def test_a_value_that_cannot_even_be_shown_is_named_by_its_type() -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError

    assert plain(Odd()) == "Odd"


def test_no_mark_is_dropped_however_many_there_are() -> None:
    marks = Marks(SystemClock())
    for round_ in range(3):
        for at in range(9_000):
            marks.add("m", at + 9_000 * round_)
        assert [mark.value for mark in marks.new()] == [*range(9_000 * round_, 9_000 * (round_ + 1))]
