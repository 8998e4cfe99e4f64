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
    """Return the call in a line of source that has one; empty if it has none or several."""
    calls = [name for name in _CALL.findall(line.split("#", 1)[0]) if name not in _WORDS]
    return calls[0] if len(calls) == 1 else ""
