"""Calls in source code: what a line or an expression calls, as it is written."""

from __future__ import annotations

import re

_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
_NAME = re.compile(r"([A-Za-z_][\w.]*)\s*$")
_WORDS = frozenset(
    (
        "if",
        "elif",
        "while",
        "for",
        "in",
        "with",
        "return",
        "yield",
        "await",
        "and",
        "or",
        "not",
        "def",
        "class",
        "assert",
    )
)

# The last words of calls in which a thread waits, and so is seen.
_WAITS = frozenset(
    {"item", "cpu", "tolist", "numpy", "synchronize", "empty_cache", "to", "cuda", "save", "load", "print"}
    | {"sleep", "acquire", "wait", "join", "get", "result", "read", "write", "recv"}
)


def called(expression: str) -> str:
    """Return what an expression calls last: "loss.item" for "loss.item()", "item" for "f(x).item()"; empty if it is no call."""
    text = expression.strip().removeprefix("await ").strip()
    if not text.endswith(")"):
        return ""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth == 0:
            name = _NAME.search(text[:at])
            return name[1].strip(".") if name and name[1] not in _WORDS else ""
    return ""


def call_in(line: str) -> str:
    """Return the call in a line of source; of several the one in which a thread waits, and none if there is no such call."""
    calls = dict.fromkeys(name for name in _CALL.findall(line.split("#", 1)[0]) if name not in _WORDS)
    waits = [name for name in calls if name.rpartition(".")[2] in _WAITS]
    return next(iter(calls)) if len(calls) == 1 else waits[0] if waits else ""
