"""Stacks of loader workers: each worker samples itself and writes what it executes into a pipe of the program.

Only workers of torch's DataLoader do this, nothing of the loader is touched, and what a full pipe does not take is dropped. A forked
worker inherits the pipe. A spawned one imports the program's main module again, and with it gpulse; it finds the pipe, which has a name
in a folder that only the user can read, by the PID of its parent.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from ..model.stacks import Stack

_EVERY = 0.1  # seconds between two samples of a worker
_LONGEST = 4000  # bytes of one message: a pipe takes up to 4096 whole
_MOST = 1 << 16  # bytes read at once
_LOADER = os.path.join("torch", "utils", "data", "dataloader.py")
_LOOP = os.path.join("torch", "utils", "data", "_utils", "worker.py")
_PREPARING = 600.0  # seconds that a spawned process may take to import the program
_STARTING = 2.0  # seconds from then until a worker is in its loop


class WorkerStacks:
    """The pipe of one program: `read` in the program, `start` in a forked child."""

    def __init__(self) -> None:
        self._from = self._to = -1
        self._rest = b""
        self._path = _named_pipe()
        try:
            if self._path:
                self._from = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self._to = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            else:
                self._from, self._to = os.pipe()
                os.set_blocking(self._from, False)
                os.set_blocking(self._to, False)
        except OSError:
            self.close()  # no descriptors left: the program does without

    def read(self) -> Iterator[Stack]:
        """Yield the stacks that workers have written."""
        if not getattr(sys.modules.get("multiprocessing.process"), "_children", ()):
            return  # to read a pipe is to release the interpreter's lock, which costs a program that launches kernels 0.2 ms
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
        handle, self._from, self._path = self._from, -1, ""
        if handle < 0:
            return
        os.close(handle)
        if _is_under(sys._getframe(), _LOADER):
            _thread.start_new_thread(_sample, (_thread.get_ident(), self._to))
        else:
            self.close()

    def close(self) -> None:
        """Close both ends, and remove the name."""
        ends, self._from, self._to = (self._from, self._to), -1, -1
        path, self._path = self._path, ""
        try:
            if path and os.path.samestat(os.stat(path), os.fstat(ends[0])):  # not that of a later Monitor
                os.unlink(path)
        except OSError:
            pass
        for handle in ends:
            if handle >= 0:
                os.close(handle)


def follow_spawned() -> None:
    """In a process that multiprocessing prepares: sample its main thread if it becomes a loader worker of a program with a Monitor."""
    if _is_server("self") and not _is_server(f"{os.getppid()}"):  # it imports the program once, for all that it forks
        os.register_at_fork(after_in_child=_follow_main)
    else:
        _follow_main()


def _is_server(pid: str) -> bool:
    """Return whether a process is multiprocessing's fork server, or was forked by it."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"multiprocessing.forkserver" in file.read(4096)
    except OSError:
        return False


def _follow_main() -> None:
    _thread.start_new_thread(_follow, (_thread.get_ident(),))


def _follow(thread: int) -> None:
    """Wait until it is known what this process is, and sample it if it is a worker; whatever goes wrong, nothing else notices."""
    try:
        handle = _pipe_of(_parent_of_this())
        until = time.monotonic() + _STARTING
        while not _is_under(sys._current_frames().get(thread), _LOOP):
            if time.monotonic() > until:
                os.close(handle)
                return
            time.sleep(_EVERY)
    except Exception:  # noqa: BLE001  # no Monitor in the parent, or the interpreter is exiting
        return
    _sample(thread, handle)


def _parent_of_this() -> int:
    """Return the PID of the process that asked for this one, once it is prepared; raise TimeoutError if that never happens."""
    process = sys.modules["multiprocessing.process"]
    until = time.monotonic() + _PREPARING
    while (parent := process.parent_process()) is None:
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(_EVERY)
    return int(parent.pid)


def _sample(thread: int, handle: int) -> None:
    """Sample a worker until it ends; whatever goes wrong ends the sampling, never the worker."""
    try:
        import json

        from ..analysis.own_lines import worker_frames
        from .stack_sampler import FrameNames

        pid, names = os.getpid(), FrameNames()
        while True:
            time.sleep(_EVERY)
            frames = worker_frames(names.stack(sys._current_frames().get(thread)))
            message = json.dumps([time.monotonic(), pid, frames], separators=(",", ":")).encode()
            while len(message) >= _LONGEST and len(frames) > 1:
                frames = frames[len(frames) // 2 :]
                message = json.dumps([time.monotonic(), pid, frames], separators=(",", ":")).encode()
            try:
                os.write(handle, message + b"\n")
            except BlockingIOError:
                pass  # the program does not read now
    except Exception:  # noqa: BLE001, S110  # the program has ended, or the interpreter is about to
        pass


def _named_pipe() -> str:
    """Make the pipe of this process and return its path; empty where there is no place for it."""
    from ..store.lines import remove
    from .presence import WORKERS, private_folder

    try:
        path = os.path.join(private_folder(os.environ), f"{os.getpid()}{WORKERS}")
        remove(path)  # of a process that had the same PID
        os.mkfifo(path, 0o600)
    except OSError:
        return ""
    return path


def _pipe_of(pid: int) -> int:
    """Open the pipe of a program; raise OSError if it has none or nobody reads it."""
    from .presence import WORKERS, private_folder

    path = os.path.join(private_folder(os.environ), f"{pid}{WORKERS}")
    return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_under(frame: FrameType | None, file: str) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False
