"""What a coroutine waits for: the frames that an event loop has put aside while it waits."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from ..model.stacks import Frame
    from .frames import FrameNames

_DEEPEST = 50  # coroutines, one awaiting the next


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
    while task is not None and len(found) < _DEEPEST:
        if hasattr(task, "get_coro"):
            coroutine = task.get_coro()
            while (frame := getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)) is not None:
                found.append(names.place(frame.f_code, frame.f_lasti, frame.f_lineno))
                coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
            task = getattr(task, "_fut_waiter", None)
        else:  # gather: the first that is not done
            task = next((child for child in getattr(task, "_children", ()) if not child.done()), None)
    return found
