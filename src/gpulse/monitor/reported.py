"""What a program reports, as plain numbers and texts: whatever it passes, nothing is raised into the program."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 1e15  # beyond, a float no longer counts single items
_EARLIER = 1.0  # seconds before the start of a run in which a wait may have begun
_LONGEST = 60  # characters of a wrong value in a message


class ReportedNumbers:
    """Reads the numbers that a program reports; `say` is called with what is wrong, with one sentence for each name."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._sentences: dict[str, str] = {}

    def read(self, name: str, given: object, most: float = MOST) -> float | None:
        """Return a number from 0 to `most`; None for anything else, which is reported and ignored."""
        value = plain(given)
        if isinstance(value, (int, float)) and 0 <= value <= most:
            return value
        sentence = f"{name}={_shown(given)} is not a number from 0 to {most:.3g}; it is ignored (reported once)."
        self._say(self._sentences.setdefault(name, sentence))
        return None

    def step(self, count: object, items: object, tokens: object) -> tuple[int, float, float]:
        """Return what a step has counted; what is not a number counts as nothing."""
        steps = self.read("step: count", count)
        return int(steps or 0), self.read("step: items", items) or 0.0, self.read("step: tokens", tokens) or 0.0

    def wait(self, seconds: object, lasted: float) -> float:
        """Return how long a program has waited: of a wait that began before the run, which has `lasted` some seconds, only the rest."""
        return min(lasted, self.read("waited: seconds", seconds, lasted + _EARLIER) or 0.0)


def plain(value: object) -> float | str | None:
    """Return a value as a number, if it is one: a tensor or array with one element, or a scalar of numpy; else as text."""
    if value is None or type(value) in (float, bool, str):
        return value if type(value) is not str else text(value)  # type: ignore[return-value]
    if type(value) is int:
        return value if abs(value) < sys.float_info.max else "an integer beyond all floats"
    for convert in ("item", "__index__", "__float__"):  # tensors and arrays, other integers, other numbers
        try:
            number = getattr(value, convert)()
        except Exception:  # noqa: BLE001  # several elements, no such method, or whatever the program's class raises
            continue
        if type(number) in (int, float, bool):
            return plain(number)
    return text(value)


def text(value: object) -> str:
    """Return a value as text that can be encoded; the name of its type, if it cannot be shown."""
    try:
        return str(value).encode("utf-8", "backslashreplace").decode()
    except Exception:  # noqa: BLE001  # whatever the program's class raises
        return type(value).__name__


def _shown(value: object) -> str:
    try:
        found = text(repr(value))
    except Exception:  # noqa: BLE001
        found = type(value).__name__
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}…"
