"""The call that a line of source code makes, as it is written: "loss.item" for `total += loss.item()`."""

from __future__ import annotations

import ast
import os
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.stacks import Frame

_LARGEST = 1 << 20  # bytes of a file; a generated one may have any size
# Calls in which a thread waits, by their last word: of several in one line, a thread that is seen there is in one of these.
_WAITS = frozenset(
    {"item", "cpu", "tolist", "numpy", "synchronize", "empty_cache", "to", "cuda", "save", "load", "print"}
    | {"sleep", "acquire", "wait", "join", "get", "result", "read", "write", "recv"}
)
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3")


def with_call(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return a stack, outermost frame first, in which the innermost frame of the program itself names the call it is in."""
    for at in range(len(frames) - 1, -1, -1):
        frame = frames[at]
        if not frame.file.startswith("<") and not any(folder in frame.file for folder in _LIBRARIES):
            call = call_at(frame.file, frame.line)
            return (*frames[:at], frame._replace(call=call), *frames[at + 1 :]) if call else frames
    return frames


@lru_cache(maxsize=4096)
def call_at(file: str, line: int) -> str:
    """Return the call in a line; empty where there is none, several alike, or no file to be read."""
    names = _calls(file).get(line, ())
    if len(set(names)) == 1:
        return names[0]
    waits = [name for name in names if name.rpartition(".")[2] in _WAITS]
    return waits[0] if waits else ""


@lru_cache(maxsize=64)
def _calls(file: str) -> dict[int, tuple[str, ...]]:
    """Return the names of the calls in each line of a file."""
    try:
        if os.stat(file).st_size > _LARGEST:
            return {}
        with open(file, "rb") as source:
            tree = ast.parse(source.read(_LARGEST))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _name(node.func)):
            last = node.end_lineno if node.end_lineno is not None else node.lineno
            for line in range(node.lineno, min(last, node.lineno + 20) + 1):
                found[line] = (*found.get(line, ()), name)
    return found


def _name(node: ast.expr) -> str:
    """Return a name with dots as it is written; what is not a name is left out: ".item" for `f(x).item()`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts)) if any(parts) else ""
