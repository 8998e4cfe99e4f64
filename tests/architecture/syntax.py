"""The modules of the package as syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
FILES = sorted(SOURCE.rglob("*.py"))


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield each module's path below `src` and its tree; all at once would keep the garbage collector busy for seconds."""
    for path in FILES:
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf-8"))


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and all statements in it; expressions, which are most of a tree, are left out."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, part, ())
