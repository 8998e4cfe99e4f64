"""Samples the stacks of this program ten times per second, and joins them with what its GPUs did at that moment.

Names and line numbers are copied at once: no frame of the program, and so no tensor, is kept alive. A sample costs about 40 µs.
"""

from __future__ import annotations

import linecache
import os
import random
import sys
import threading
import time
from itertools import islice

from ..analysis.lost_time import CodeTally
from ..analysis.own_lines import call_in, called, code_lines
from ..model.stacks import Frame, Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from ..model.stacks import CodeLine, TimedStack
    from .messages import AgentSample
    from .worker_stacks import WorkerStacks

EVERY = 0.1  # seconds between two samples of the stacks
_UNEVEN = 0.4  # of that by which one comes early or late, so that all places of steps that take 0.1 s are seen
_SLIPPED = 0.001  # seconds that a sample must be late for the program to have held the interpreter's lock meanwhile
_LATEST = 5.0  # seconds that one stack may stand for: the program may have been stopped
_OFTEN = 15.0  # seconds between two tables of lines for those who watch
_THREADS = 16  # threads looked at until one is known to feed the GPU


class StackSampler:
    """The stacks of this process; `tick` and `add` are called by one thread, everything else by any."""

    def __init__(self, workers: WorkerStacks) -> None:
        self._workers = workers
        self._tally = CodeTally()
        self._lock = threading.RLock()
        self._names = FrameNames()
        self._pid = os.getpid()
        self._at = time.monotonic()
        self._due = self._at
        self._told: tuple[float, tuple[CodeLine, ...]] = (self._at, ())

    def tick(self) -> float:
        """Sample the stacks if that is due; return the seconds until it is due again.

        A program that holds the interpreter's lock is made to release it after 5 ms, anywhere. If it does so before, then in a call that
        follows what held the lock: such a stack is left out, or calls after Python code would seem to take time of that code.
        """
        now = time.monotonic()
        if _SLIPPED < now - self._due < sys.getswitchinterval():
            self._at, self._due = now, now + EVERY * random.uniform(0.0, _UNEVEN)
        elif now >= self._due:
            seconds, self._at = min(_LATEST, now - self._at), now
            self._due = now + EVERY * random.uniform(1.0 - _UNEVEN, 1.0 + _UNEVEN)
            stacks = self._stacks(now, seconds)
            with self._lock:
                self._tally.add_stacks((*stacks, *self._workers.read()))
        return max(0.0, self._due - time.monotonic())

    def add(self, sample: AgentSample) -> None:
        """Take a sample of the GPUs; only those count that this very process computes on, for its own stacks say nothing of others."""
        own = None if sample.own is None else sample.own & {self._pid}
        with self._lock:
            self._tally.add_sample(sample.at, sample.snapshot.gpus, own, time.time() - time.monotonic())

    def lines(self) -> tuple[CodeLine, ...]:
        """Return the lines of the user's code so far, the longest wait first."""
        return code_lines(self.stacks())

    def recent(self) -> tuple[CodeLine, ...]:
        """Return the lines as they were some seconds ago, for callers that ask repeatedly; none in the first seconds."""
        at, lines = self._told
        if (now := time.monotonic()) - at >= _OFTEN and self._tally.is_settled:
            lines = self.lines()
            self._told = now, lines
        return lines

    def stacks(self) -> list[TimedStack]:
        """Return every stack so far with the seconds in which the GPUs waited and computed."""
        with self._lock:
            return self._tally.stacks()

    def _stacks(self, now: float, seconds: float) -> list[Stack]:
        main = threading.main_thread().ident
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        chosen = {main: frames[main]} if main in frames else {}
        if not self._tally.knows_feeder:
            chosen |= dict([*frames.items()][:_THREADS])
        names = {} if chosen.keys() <= {main} else {thread.ident: thread.name for thread in threading.enumerate()}
        frames.clear()
        found = []
        for thread, frame in chosen.items():
            name = names.get(thread, "")
            if not name.startswith("gpulse-"):
                copied = self._copied(frame)
                found.append(Stack(now, copied, seconds, "main" if thread == main else "thread", f"{name} {thread}"))
        return found

    def _copied(self, frame: FrameType) -> tuple[Frame, ...]:
        return (*self._names.stack(frame), *awaited_frames(frame, self._names))


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
