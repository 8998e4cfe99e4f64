"""The marks of a program: events that it names itself, with a number or a text."""

from __future__ import annotations

import threading
import time
from collections import deque

from ..sinks.base import Mark

_MOST = 10_000  # kept; beyond, the oldest are dropped


class Marks:
    """Marks in order; thread-safe. `all` has the newest ten thousand, `new` those since its last call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: deque[Mark] = deque(maxlen=_MOST)
        self._new: deque[Mark] = deque(maxlen=_MOST)

    def add(self, name: str, value: object) -> None:
        """Add a mark. Its value is converted at once, so that nothing of the program is kept alive."""
        mark = Mark(name, plain(value), time.time())
        with self._lock:
            self._all.append(mark)
            self._new.append(mark)

    def new(self) -> tuple[Mark, ...]:
        """Return the marks since the last call."""
        with self._lock:
            fresh = tuple(self._new)
            self._new.clear()
        return fresh

    def all(self) -> tuple[Mark, ...]:
        """Return all marks that are kept."""
        with self._lock:
            return tuple(self._all)


def plain(value: object) -> float | str | None:
    """Return a value as a number, if it is one: a tensor or array with one element, or a scalar of numpy; else as text."""
    if value is None or type(value) in (int, float, bool, str):
        return value  # type: ignore[return-value]
    for convert in ("item", "__index__", "__float__"):  # tensors and arrays, other integers, other numbers
        try:
            number = getattr(value, convert)()
        except Exception:  # noqa: BLE001  # several elements, no such method, or whatever the program's class raises
            continue
        if isinstance(number, (int, float)):
            return number
    try:
        return str(value)
    except Exception:  # noqa: BLE001
        return type(value).__name__
