"""Frames of the interpreter, and those that an event loop has put aside, as values: file, line, function, and the call at that place."""

from __future__ import annotations

import linecache
import sys
from itertools import islice

from ..analysis.source_calls import call_in, called
from ..model.stacks import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

DEEPEST = 200  # frames of a stack that are looked at, from the inside
_MOST = 20_000  # places that are remembered
_AWAITED = 50  # coroutines, one awaiting the next
_LINES = 12  # lines of one call that are read


class FrameNames:
    """Remembers each place of the program that was seen, so that its source is read once, while it is the one that runs."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[CodeType, Frame]] = {}

    def stack(self, frame: FrameType | None) -> tuple[Frame, ...]:
        """Return a frame and those that called it as values, outermost first."""
        found: list[Frame] = []
        while frame is not None and len(found) < DEEPEST:
            found.append(self.place(frame.f_code, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        return tuple(reversed(found))

    def place(self, code: CodeType, instruction: int, line: int | None) -> Frame:
        """Return the value of one place."""
        known = self._known.get((id(code), instruction))
        if known is not None:
            return known[1]
        if len(self._known) >= _MOST:
            self._known.clear()
        number = line or line_before(code, instruction)
        frame = Frame(code.co_filename, number, code.co_name, call_at(code, instruction, number))
        self._known[id(code), instruction] = code, frame  # with the code, whose address would else be another's one day
        return frame


def line_before(code: CodeType, instruction: int) -> int:
    """Return the line of the last instruction that has one: the jump at the end of a loop's body belongs to no line."""
    lines = [line for start, _, line in code.co_lines() if line is not None and start <= instruction]
    return lines[-1] if lines else code.co_firstlineno


def call_at(code: CodeType, instruction: int, line: int) -> str:
    """Return the call at an instruction as it is written, "loss.item"; empty if there is none or the source cannot be read."""
    try:
        positions = getattr(code, "co_positions", None)
        if positions is None:  # Python 3.10 knows the line only
            return call_in(linecache.getline(code.co_filename, line))
        place = next(islice(positions(), instruction // 2, None), None)
        if place is None or None in place:
            return ""
        first, last, start, end = place
        if not first <= last < first + _LINES:
            return ""
        lines = [linecache.getline(code.co_filename, number).encode() for number in range(first, last + 1)]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return called(b"".join(lines).decode("utf-8", "replace"))
    except Exception:  # noqa: BLE001  # whatever the source of a program looks like, the program goes on
        return ""


def awaited_frames(frame: FrameType | None, names: FrameNames) -> list[Frame]:
    """Return the frames of the coroutine that `asyncio.run` runs, if the thread of this stack waits for events; else none."""
    if frame is None or not frame.f_code.co_filename.endswith("selectors.py") or "asyncio" not in sys.modules:
        return []
    try:
        while frame is not None:
            if frame.f_code.co_name == "run_until_complete" and frame.f_code.co_filename.endswith("base_events.py"):
                return _frames(frame.f_locals.get("future"), names)
            frame = frame.f_back
    except Exception:  # noqa: BLE001, S110  # another thread changes what is read here
        pass
    return []


def _frames(task: Any, names: FrameNames) -> list[Frame]:
    """Return the frames of a task's coroutines, and of those of the task that it waits for in turn."""
    found: list[Frame] = []
    while task is not None and len(found) < _AWAITED:
        if hasattr(task, "get_coro"):
            coroutine = task.get_coro()
            while (frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)) is not None:
                found.append(names.place(frame.f_code, frame.f_lasti, frame.f_lineno))
                coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
            task = getattr(task, "_fut_waiter", None)
        else:  # gather: the first that is not done
            task = next((child for child in getattr(task, "_children", ()) if not child.done()), None)
    return found
