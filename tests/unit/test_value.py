"""Value: fields, defaults, equality, and what cannot be changed."""

from __future__ import annotations

import copy
import inspect
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from gpulse.value import Value, fresh


class Point(Value):
    """Two numbers."""

    x: int
    y: int = 0

    def sum(self) -> int:
        """Return both added."""
        return self.x + self.y


class Named(Point):
    """A point with a name and notes."""

    name: str = ""
    notes: list[str] = fresh(factory=list)


class Fixed(Value, frozen=True):
    """A value that cannot be changed."""

    points: tuple[Point, ...]
    labels: tuple[str, ...] = ()


class Kept(Value, frozen=True):
    """A value that stores what it is given in a form that cannot change, and is hashed by its name."""

    name: str
    parts: Sequence[int] = ()
    facts: Mapping[str, Point] = MappingProxyType({})

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")

    def __hash__(self) -> int:
        return hash(self.name)


class Doubled(Point):
    """A point with a constructor of its own, which calls its base's before any other point was made."""

    scale: int = 1

    def __init__(self, x: int) -> None:
        super().__init__(x * 2, x * 2)
        self.scale = 2


def test_a_constructor_by_hand_may_call_the_one_of_its_base() -> None:
    assert Doubled(3).sum() == 12


def test_fields_come_in_order_with_their_defaults_and_those_of_the_base_first() -> None:
    assert Named(1, 2, "a") == Named(name="a", x=1, y=2)
    assert (Point(1).sum(), Named(4).sum()) == (1, 4)
    assert str(inspect.signature(Point)) == "(x: 'int', y: 'int' = 0)"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_a_fresh_default_is_not_shared() -> None:
    first = Named(1)
    first.notes.append("mine")
    assert Named(1).notes == []


def test_values_are_equal_by_their_fields_and_their_class() -> None:
    assert Point(1) == Point(1, 0) != Point(2)
    assert Point(1) != Named(1)
    assert repr(Point(1)) == "Point(x=1, y=0)"


def test_a_copy_with_changes_leaves_the_first_alone() -> None:
    first = Point(1, 2)
    assert (first.replace(y=5), first) == (Point(1, 5), Point(1, 2))
    with pytest.raises(TypeError):
        first.replace(z=1)


def test_a_frozen_value_cannot_be_changed_and_can_be_hashed() -> None:
    fixed = Fixed((), ("a",))
    with pytest.raises(AttributeError, match="a Fixed is a value and cannot be changed"):
        fixed.labels = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del fixed.labels
    assert {fixed: 1}[Fixed((), ("a",))] == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))


def test_there_is_no_room_for_other_names() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]


def test_values_survive_pickling_and_copying() -> None:
    fixed = Fixed((Point(1),), ("a",))
    assert pickle.loads(pickle.dumps(fixed)) == copy.deepcopy(fixed) == fixed


def test_plain_data_holds_no_values_and_no_tuples() -> None:
    assert Fixed((Point(1),), ("a",)).to_plain() == {"points": [{"x": 1, "y": 0}], "labels": ["a"]}


def test_a_sequence_is_stored_as_a_tuple_and_a_mapping_is_told_as_a_dict() -> None:
    given = [1, 2]
    kept = Kept("a", given, MappingProxyType({"x": Point(1)}))
    given.append(3)
    assert kept.parts == (1, 2)
    assert kept.to_plain() == {"name": "a", "parts": [1, 2], "facts": {"x": {"x": 1, "y": 0}}}


def test_a_class_may_check_its_fields_and_hash_them_its_own_way() -> None:
    with pytest.raises(ValueError, match="a name is needed"):
        Kept("")
    assert hash(Kept("a", [1])) == hash(Kept("a", [2]))


def test_nothing_is_loaded_for_it() -> None:
    code = "import sys; import gpulse.value; print(sorted({'dataclasses', 'typing', 'inspect'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_first_value_made_at_the_end_of_an_interrupted_program_does_not_change_how_it_ends() -> None:
    code = (
        "import atexit; from gpulse.sinks.base import Mark; atexit.register(Mark, 'm', 1, 0.0); raise KeyboardInterrupt"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGINT
