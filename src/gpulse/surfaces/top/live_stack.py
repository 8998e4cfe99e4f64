"""The present stack of the process whose details are open, read once per second in a thread of its own."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...model.stacks import Stack
    from ...monitor.presence import Presence

_EVERY = 1.0  # seconds; reading a stack costs 11 ms of CPU
_PATIENCE = 5.0


class LiveStack:
    """Reads the stacks of one process of this user at a time, and calls `done` in its own thread when there is something new.

    `stacks` and `problem`, why there are none, are those of `pid`. A process of somebody else is not read.
    """

    def __init__(self, done: Callable[[], None]) -> None:
        self.pid: int | None = None
        self.stacks: Sequence[Stack] = ()
        self.problem = ""
        self._done = done
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pid: int | None) -> None:
        """Read this process from now on; None to stop."""
        if pid == self.pid:
            return
        self.pid, self.stacks, self.problem = pid, (), ""
        self._changed.set()
        if pid is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpulse-stack", daemon=True)
            self._thread.start()

    @property
    def run(self) -> Presence | None:
        """What a Monitor in the process says of its run now; reading its file takes 50 µs."""
        from ...monitor.presence import presence_of

        return None if self.pid is None else presence_of(self.pid)

    def _run(self) -> None:
        while True:
            self._changed.clear()
            pid = self.pid
            again = pid is not None and self._read(pid)
            self._changed.wait(_EVERY if again else None)

    def _read(self, pid: int) -> bool:
        """Read once; return whether to do so again."""
        from ...sources.py_spy import StacksUnavailable, is_own, read_stacks

        if not is_own(pid):
            return False
        stacks, problem = [], ""
        try:
            stacks = read_stacks(pid, patience=_PATIENCE)
        except StacksUnavailable as error:
            problem = str(error)
        if pid == self.pid:
            self.stacks, self.problem = stacks, problem
            self._done()
        return not problem
