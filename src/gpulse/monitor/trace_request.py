"""Requests to a running Monitor, for a profiler trace or its stacks: a small file beside its own, which it answers in another.

No signal is used unasked, because programs have handlers of their own.
"""

from __future__ import annotations

import json
import os
import stat
import time

from ..errors import GpulseError, UsageError
from ..present.text import clean
from ..store.lines import replaced
from .presence import folder_of, presences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

STEPS = 20
MOST_STEPS = 1000
_LARGEST = 1 << 14  # bytes of a file that are read
_LARGEST_TREE = 1 << 18
_OLD = 3600.0  # seconds after which a request no longer counts
STATES = ("waiting", "tracing", "writing", "done", "failed")


class TraceRequest:
    """A request to one process. `answer` returns its state, one of STATES, and with it the path of the trace or the reason."""

    def __init__(self, pid: int, folder: str, number: str) -> None:
        self.pid = pid
        self._folder = folder
        self._number = number

    @property
    def taken(self) -> bool:
        """Whether the Monitor has seen it; it looks about once per second."""
        return not os.path.exists(_request_path(self._folder, self.pid))

    def answer(self) -> tuple[str, str]:
        """Return the state, and the path of the trace or why there is none."""
        plain = _read(_answer_path(self._folder, self.pid))
        if plain is None or plain.get("id") != self._number or plain.get("state") not in STATES:
            return "waiting", ""
        return plain["state"], clean(str(plain.get("path") or plain.get("reason") or ""))

    def withdraw(self) -> None:
        """Take it back, if nobody has taken it."""
        _unlink(_request_path(self._folder, self.pid))


def ask(pid: int, steps: int = STEPS, environ: Mapping[str, str] = os.environ) -> TraceRequest:
    """Ask the Monitor in a process of this user for a trace of its next steps; raise GpulseError if it has none."""
    if not 1 <= steps <= MOST_STEPS:
        raise UsageError(f"{steps} is not a number of steps from 1 to {MOST_STEPS};", f"try {STEPS}.")
    folder = folder_of(pid, environ)
    if folder is None:
        raise GpulseError(f"process {pid} has no Monitor of yours that could write a trace.", _remedy(environ))
    number = os.urandom(8).hex()
    with replaced(_request_path(folder, pid)) as file:
        file.write(json.dumps({"id": number, "steps": steps, "time": time.time()}).encode())
    return TraceRequest(pid, folder, number)


def take(pid: int, folder: str) -> tuple[str, int] | None:
    """Return id and steps of a new request to a process, and remove it; None if there is none."""
    path = _request_path(folder, pid)
    if not os.path.lexists(path):  # once per second: nothing more is asked of the disk
        return None
    plain = _read(path)
    _unlink(path)
    if (
        plain is None
        or not isinstance(number := plain.get("id"), str)
        or not isinstance(steps := plain.get("steps"), int)
    ):
        return None
    asked = plain.get("time")
    fresh = isinstance(asked, (int, float)) and abs(time.time() - asked) < _OLD
    return (number[:64], steps) if fresh and 1 <= steps <= MOST_STEPS else None


def reply(pid: int, folder: str, number: str, state: str, **more: str) -> None:
    """Answer a request; whatever fails, the program goes on."""
    try:
        with replaced(_answer_path(folder, pid)) as file:
            file.write(json.dumps({"id": number, "state": state, **more}).encode())
    except OSError:
        pass


def ask_stacks(pid: int, environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """Ask the Monitor in a process of this user where GPU time was lost; return its last answer, a tree of frames.

    None before the first answer, which takes a second or so, and where there is no Monitor.
    """
    if (folder := folder_of(pid, environ)) is None:
        return None
    with replaced(_look_path(folder, pid)):
        pass  # that it is there says everything
    return _read(_stacks_path(folder, pid), _LARGEST_TREE)


def show_stacks(pid: int, folder: str, tree: Callable[[], dict[str, Any]]) -> None:
    """Answer who asks for stacks, if somebody does; `tree` makes the answer."""
    path = _look_path(folder, pid)
    if not os.path.lexists(path):
        return
    _unlink(path)
    try:
        with replaced(_stacks_path(folder, pid)) as file:
            file.write(json.dumps(tree(), separators=(",", ":")).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def forget(pid: int, folder: str) -> None:
    """Remove the files of a process that ends."""
    for path in (_request_path, _answer_path, _look_path, _stacks_path):
        _unlink(path(folder, pid))


def _remedy(environ: Mapping[str, str]) -> str:
    others = sorted(presences(environ))
    if others:
        return f"These have: {', '.join(map(str, others[:8]))}."
    return "Use gpulse.Monitor in the program, and count steps with monitor.batches or monitor.step."


def _request_path(folder: str, pid: int) -> str:
    return os.path.join(folder, f"{pid}.request.json")


def _answer_path(folder: str, pid: int) -> str:
    return os.path.join(folder, f"{pid}.answer.json")


def _look_path(folder: str, pid: int) -> str:
    return os.path.join(folder, f"{pid}.look.json")


def _stacks_path(folder: str, pid: int) -> str:
    return os.path.join(folder, f"{pid}.stacks.json")


def _read(path: str, most: int = _LARGEST) -> dict[str, Any] | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (
            0,
            os.geteuid(),
            os.stat(os.path.dirname(path)).st_uid,
        ):
            return None
        plain = json.loads(os.read(handle, most))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(handle)
    return plain if isinstance(plain, dict) else None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
