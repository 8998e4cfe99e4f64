"""Stacks of loader workers: each forked worker samples itself and writes what it executes into a pipe of the program.

Only workers that torch's DataLoader forks do this, nothing of the loader is touched, and what a full pipe does not take is dropped.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.stacks import Stack

_EVERY = 0.1  # seconds between two samples of a worker
_LONGEST = 4000  # bytes of one message: a pipe takes up to 4096 whole
_MOST = 1 << 16  # bytes read at once
_LOADER = os.path.join("torch", "utils", "data", "dataloader.py")


class WorkerStacks:
    """The pipe of one program: `read` in the program, `start` in a forked child."""

    def __init__(self) -> None:
        self._from = self._to = -1
        self._rest = b""
        try:
            self._from, self._to = os.pipe()
            os.set_blocking(self._from, False)
            os.set_blocking(self._to, False)
        except OSError:
            self.close()  # no descriptors left: the program does without

    def read(self) -> Iterator[Stack]:
        """Yield the stacks that workers have written."""
        import json

        from ..model.stacks import Frame, Stack

        try:
            chunk = os.read(self._from, _MOST) if self._from >= 0 else b""
        except OSError:
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            try:
                at, pid, frames = json.loads(line)
                yield Stack(float(at), tuple(Frame(*one) for one in frames), _EVERY, "worker", "", int(pid))
            except (ValueError, TypeError):
                continue

    def start(self) -> None:
        """In a forked child: sample its main thread if it is a loader worker."""
        handle, self._from = self._from, -1
        if handle < 0:
            return
        os.close(handle)
        if _is_forked_by_loader():
            _thread.start_new_thread(self._run, (_thread.get_ident(),))
        else:
            self.close()

    def close(self) -> None:
        """Close both ends."""
        ends, self._from, self._to = (self._from, self._to), -1, -1
        for handle in ends:
            if handle >= 0:
                os.close(handle)

    def _run(self, thread: int) -> None:
        """Sample the worker until it ends; whatever goes wrong ends the sampling, never the worker."""
        try:
            import json

            from ..analysis.own_lines import worker_frames
            from .frames import FrameNames

            pid, names = os.getpid(), FrameNames()
            while True:
                time.sleep(_EVERY)
                frames = worker_frames(names.stack(sys._current_frames().get(thread)))
                message = json.dumps([time.monotonic(), pid, frames], separators=(",", ":")).encode()
                while len(message) >= _LONGEST and len(frames) > 1:
                    frames = frames[len(frames) // 2 :]
                    message = json.dumps([time.monotonic(), pid, frames], separators=(",", ":")).encode()
                try:
                    os.write(self._to, message + b"\n")
                except BlockingIOError:
                    pass  # the program does not read now
        except Exception:  # noqa: BLE001, S110  # the program has ended, or the interpreter is about to
            pass


def _is_forked_by_loader() -> bool:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename.endswith(_LOADER):
            return True
    return False
