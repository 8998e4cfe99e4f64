"""The house stays small: files, functions and names."""

from __future__ import annotations

import ast
import functools

from tests.architecture.syntax import FILES, SOURCE, modules, statements

_LONG = {"catalog.py"}  # one metric, one line
_EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "core", "manager"}


class Outline:
    """What is measured of a module."""

    def __init__(self, tree: ast.Module) -> None:
        self.documented = bool(ast.get_docstring(tree))
        self.classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        self.lengths = {
            f"{node.name}:{node.lineno}": (node.end_lineno or node.lineno) - node.lineno + 1
            for node in statements(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }


@functools.cache
def outlines() -> dict[str, Outline]:
    return {name: Outline(tree) for name, tree in modules()}


def test_there_is_something_to_measure() -> None:
    assert len(FILES) > 40


def test_no_file_is_over_400_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES if path.name not in _LONG}
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}


def test_no_test_file_is_over_500_lines() -> None:
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.with_name("tests").rglob("*.py")
    }
    assert {str(path): length for path, length in lengths.items() if length > 500} == {}


def test_no_function_is_over_60_lines() -> None:
    lengths = {f"{name}:{function}": size for name, one in outlines().items() for function, size in one.lengths.items()}
    assert len(lengths) > 2000
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, one in outlines().items() if not one.documented] == []


def test_every_module_is_named_by_what_it_owns() -> None:
    parts = {str(path): {path.stem, *path.relative_to(SOURCE).parts} for path in FILES}
    assert {name: found for name, named in parts.items() if (found := named & _EMPTY_NAMES)} == {}


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for name, one in outlines().items():
        for found in one.classes:
            if not found.startswith("_"):
                homes.setdefault(found, []).append(name)
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert set(twice) <= {"GpulseCallback"}, twice  # that one is each framework's own
