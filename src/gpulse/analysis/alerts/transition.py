"""Transitions: an alert that begins and an alert that is over."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Transition:
    """One turn of one alert, which is known by (rule, uuid, what); `state` is fire or clear.

    `uuid` is empty for the machine itself. `what` tells alerts of one rule on one GPU apart: a PID, an XID code. `gpu` is the number
    people call the GPU by at that moment. `time` is in seconds since 1970. `values` holds numbers and words by name, in stored
    units. `once` is true for what has happened rather than lasts: no clear follows. Texts hold no control characters.
    """

    __slots__ = ("gpu", "once", "rule", "severity", "text", "time", "uuid", "values", "what")
    state = ""

    def __init__(
        self,
        rule: str,
        uuid: str,
        time: float,
        text: str,
        values: Mapping[str, float | str],
        *,
        gpu: str = "",
        what: str = "",
        severity: str = "warn",
        once: bool = False,
    ) -> None:
        self.rule = rule
        self.uuid = uuid
        self.time = time
        self.text = printable(text, 1000)
        self.values = {key: printable(value) if isinstance(value, str) else value for key, value in values.items()}
        self.gpu = gpu
        self.what = what
        self.severity = severity
        self.once = once

    @property
    def key(self) -> tuple[str, str, str]:
        """What the alert is known by."""
        return self.rule, self.uuid, self.what

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        words = ("time", "rule", "state", "severity", "gpu", "uuid", "what", "text", "values", "once")
        return {word: getattr(self, word) for word in words}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rule!r}, {self.uuid!r}, {self.time!r}, {self.text!r})"


class Fire(Transition):
    """An alert that begins, or with `once` something that has happened."""

    __slots__ = ()
    state = "fire"


class Clear(Transition):
    """An alert that is over."""

    __slots__ = ()
    state = "clear"


def printable(text: str, most: int = 120) -> str:
    """Return a text, part of which others chose, without what could act on a terminal or break a line."""
    text = text[:most]
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
