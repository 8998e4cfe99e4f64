"""The house stays small: files, functions and names."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[2] / "src"
_FILES = sorted(_SOURCE.rglob("*.py"))
_LONG = {"catalog.py"}  # one metric, one line
_EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "core", "manager"}


@functools.cache
def _trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(_SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in _FILES}


def test_there_is_something_to_measure() -> None:
    assert len(_FILES) > 40


def test_no_file_is_over_400_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _FILES if path.name not in _LONG}
    assert {str(path): length for path, length in lengths.items() if length > 400} == {}


def test_no_test_file_is_over_500_lines() -> None:
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in _SOURCE.with_name("tests").rglob("*.py")
    }
    assert {str(path): length for path, length in lengths.items() if length > 500} == {}


def test_no_function_is_over_60_lines() -> None:
    functions = {
        f"{name}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {name: length for name, length in functions.items() if length > 60} == {}


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, tree in _trees().items() if not ast.get_docstring(tree)] == []


def test_every_module_is_named_by_what_it_owns() -> None:
    parts = {str(path): {path.stem, *path.relative_to(_SOURCE).parts} for path in _FILES}
    assert {name: found for name, named in parts.items() if (found := named & _EMPTY_NAMES)} == {}


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for name, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert set(twice) <= {"GpulseCallback"}, twice  # that one is each framework's own
