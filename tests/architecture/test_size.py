"""The house stays small: files, functions and names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_SOURCE = Path(__file__).resolve().parents[2] / "src"
_FILES = sorted(_SOURCE.rglob("*.py"))
_MODULES = [pytest.param(path, id=str(path.relative_to(_SOURCE))) for path in _FILES]
_LONG = {"catalog.py"}  # one metric, one line
_EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "core", "manager"}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_there_is_something_to_measure() -> None:
    assert len(_FILES) > 40


@pytest.mark.parametrize("path", _MODULES)
def test_no_file_is_over_400_lines(path: Path) -> None:
    assert path.name in _LONG or len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", _MODULES)
def test_no_function_is_over_60_lines(path: Path) -> None:
    functions = [node for node in ast.walk(_tree(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > 60} == {}


@pytest.mark.parametrize("path", _MODULES)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(_tree(path))


@pytest.mark.parametrize("path", _MODULES)
def test_every_module_is_named_by_what_it_owns(path: Path) -> None:
    assert path.stem not in _EMPTY_NAMES
    assert not _EMPTY_NAMES.intersection(path.relative_to(_SOURCE).parts)


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in _FILES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(_SOURCE)))
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert set(twice) <= {"GpulseCallback"}, twice  # that one is each framework's own
