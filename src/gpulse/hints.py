"""Annotations that `typing.get_type_hints` can evaluate, although no module imports what only type checkers need.

Importing `typing` and the modules behind annotations would cost every program 15 ms and more. So what stands under
`if TYPE_CHECKING:` is imported when annotations are read for the first time, which few programs ever do.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType
    from typing import Any

_OURS = "gpulse."


class Hints(dict):  # type: ignore[type-arg]
    """The annotations of a function or class; reading them imports the names that they use."""

    __slots__ = ("_module",)

    def __init__(self, annotations: dict[str, Any], module: str) -> None:
        super().__init__(annotations)
        self._module = module

    def __iter__(self) -> Iterator[str]:  # with this, dict(hints) asks for keys() instead of copying in C
        complete(self._module)
        return super().__iter__()

    def keys(self) -> Any:
        """Return the names, with everything imported that their annotations use."""
        complete(self._module)
        return super().keys()

    def items(self) -> Any:
        """Return names and annotations, likewise."""
        complete(self._module)
        return super().items()

    def values(self) -> Any:
        """Return annotations, likewise."""
        complete(self._module)
        return super().values()


def load_public(package: str, name: str, homes: Mapping[str, str]) -> object:
    """Return a public name of a package at its first use; `homes` says in which of its modules each is."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    found = getattr(__import__(f"{package}.{homes[name]}", fromlist=[name]), name)
    setattr(sys.modules[package], name, found)
    prepare(found)
    return found


def prepare(entry: object) -> None:
    """Give a public function or class, with its methods and those of its base classes, annotations that can be read."""
    if isinstance(entry, type):
        for base in entry.__mro__:
            if base.__module__.startswith(_OURS):
                _prepare_class(base)
    elif getattr(entry, "__module__", "").startswith(_OURS):
        _prepare_one(entry)


def _prepare_class(owner: type) -> None:
    if isinstance(found := vars(owner).get("__annotations__"), dict) and not isinstance(found, Hints):
        owner.__annotations__ = Hints(found, owner.__module__)
    for part in [*vars(owner).values()]:
        if isinstance(part, property):
            part = part.fget
        _prepare_one(getattr(part, "__func__", part))


def _prepare_one(function: Any) -> None:
    found = getattr(function, "__annotations__", None)
    if hasattr(function, "__code__") and type(found) is dict and found:
        function.__annotations__ = Hints(found, function.__module__)


_completed: set[str] = set()


def complete(name: str) -> None:
    """Import into a module what it imports for type checkers only, and prepare the classes found there."""
    module = sys.modules.get(name)
    if name in _completed or module is None or not name.startswith(_OURS):
        return
    _completed.add(name)
    for statement in _for_checkers(module):
        _run(statement, module)
    for entry in [*vars(module).values()]:
        if isinstance(entry, type) and entry.__module__.startswith(_OURS):
            prepare(entry)


def _for_checkers(module: ModuleType) -> list[Any]:
    """Return the statements under `if TYPE_CHECKING:` at the top of a module; none if its source is not available."""
    import ast
    import inspect

    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, SyntaxError):
        return []
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return [node for block in blocks for node in block.body if not isinstance(node, ast.FunctionDef)]


def _run(statement: Any, module: ModuleType) -> None:
    """Run one statement; what is defined at run time stays, and what is not installed becomes Any."""
    import ast
    import typing

    scope = dict(vars(module))
    try:
        exec(compile(ast.Module([statement], []), module.__name__, "exec"), scope)
    except ImportError:
        names = [alias.asname or alias.name for alias in getattr(statement, "names", [])]
        scope |= {name: getattr(typing, name, typing.Any) for name in names}
    for name, value in scope.items():
        vars(module).setdefault(name, value)
