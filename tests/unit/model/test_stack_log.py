"""Stacks in recordings."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.stacks import Frame, StackReader, StackWriter

A, B = Frame("train.py", 3, "<module>"), Frame("train.py", 9, "train", "loss.item")
names = st.text(max_size=8)
frames = st.builds(Frame, names, st.integers(0, 10**6), names, names)
seconds = st.floats(0, 1e5, allow_nan=False)
tables = st.dictionaries(st.lists(frames, max_size=5).map(tuple), st.tuples(seconds, seconds), max_size=6)


@given(st.lists(tables, max_size=4))
def test_what_was_written_in_pieces_is_read_as_a_whole(
    states: list[dict[tuple[Frame, ...], tuple[float, float]]],
) -> None:
    writer, reader = StackWriter(), StackReader()
    last: dict[tuple[Frame, ...], tuple[float, float]] = {}
    for state in states:
        last |= state
        told = writer.new([(stack, *times) for stack, times in last.items()])
        reader.add(json.loads(json.dumps(told)))
    found = {stack: times for stack, *times in reader.stacks()}
    for stack, times in last.items():
        assert found.get(stack, [0.0, 0.0]) == pytest.approx([*times], abs=1e-3)


def test_a_frame_is_written_once() -> None:
    writer = StackWriter()
    first = writer.new([((A, B), 1.0, 0.5)])
    assert first == {"frames": {"0": [*A], "1": [*B]}, "times": [[[0, 1], 1.0, 0.5]]}
    assert writer.new([((A, B), 1.0, 0.5)]) is None
    assert writer.new([((A, B), 3.0, 0.5)]) == {"frames": {}, "times": [[[0, 1], 2.0, 0.0]]}


def test_a_second_run_in_the_same_file_has_numbers_of_its_own() -> None:
    reader = StackReader()
    reader.add(StackWriter().new([((A,), 1.0, 0.0)]))
    reader.add(StackWriter().new([((B,), 2.0, 0.0)]))
    assert reader.stacks() == [((A,), 1.0, 0.0), ((B,), 2.0, 0.0)]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=6), inner),
    )
)
def test_damage_is_left_out(plain: object) -> None:
    reader = StackReader()
    reader.add(plain)
    reader.add({"frames": plain, "times": plain})
    reader.add({"frames": {"0": plain}, "times": [plain, [[0], plain, 1.0]]})
    assert all(isinstance(frame, Frame) for stack, _, _ in reader.stacks() for frame in stack)
