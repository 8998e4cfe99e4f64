"""Samples the stacks of this program ten times per second, and joins them with what its GPUs did at that moment.

Names and line numbers are copied at once: no frame of the program, and so no tensor, is kept alive. A sample costs about 40 µs.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from ..analysis.code_lines import code_lines
from ..analysis.lost_time import CodeTally
from ..model.stacks import Stack
from .frames import FrameNames, awaited_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from ..model.stacks import CodeLine, Frame, TimedStack
    from .request import AgentSample
    from .worker_stacks import WorkerStacks

EVERY = 0.1  # seconds between two samples of the stacks
_UNEVEN = (
    0.4  # of that by which one comes early or late, so that steps of a tenth of a second are seen at all their places
)
_SLIPPED = 0.001  # seconds that a sample must be late for the program to have held the interpreter's lock meanwhile
_LATEST = 5.0  # seconds that one stack may stand for: the program may have been stopped
_OFTEN = 15.0  # seconds between two tables of lines for those who watch
_THREADS = 16  # threads looked at until one is known to feed the GPU


class StackSampler:
    """The stacks of this process; `tick` and `add` are called by one thread, everything else by any."""

    def __init__(self, workers: WorkerStacks) -> None:
        self._workers = workers
        self._tally = CodeTally()
        self._lock = threading.Lock()
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
        """Return the lines as they were some seconds ago, for whoever asks again and again; none in the first seconds."""
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
