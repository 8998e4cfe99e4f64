"""Requests to a running Monitor, for a trace of its next steps or for its stacks, and the traces themselves.

A request is a small file beside the Monitor's own, which it answers in another: no signal is used unasked, because programs have
handlers of their own. The trace is made by torch's own profiler, started and stopped between steps.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from ..errors import GpulseError, UsageError
from ..present.text import clean
from ..store.lines import remove, replaced
from ..torch import part_of_torch
from ..value import Value
from .arguments import folder_beside
from .presence import folder_of, presences, read_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..sinks.base import Sink
    from .ledger import Ledger
    from .listener import RunKeeper

STEPS = 20
MOST_STEPS = 1000
_LARGEST = 1 << 14  # bytes of a file that are read
_LARGEST_TREE = 1 << 18
_OLD = 3600.0  # seconds after which a request no longer counts
STATES = ("waiting", "tracing", "writing", "done", "failed")


class TraceRequest(Value):
    """A request to one process. `answer` returns its state, one of STATES, and with it the path of the trace or the reason."""

    pid: int
    folder: str
    number: str

    @property
    def taken(self) -> bool:
        """Whether the Monitor has seen it; it looks about once per second."""
        return not os.path.exists(_path(self.folder, self.pid, "request"))

    def answer(self) -> tuple[str, str]:
        """Return the state, and the path of the trace or why there is none."""
        plain = _read(_path(self.folder, self.pid, "answer"))
        if plain is None or plain.get("id") != self.number or plain.get("state") not in STATES:
            return "waiting", ""
        return plain["state"], clean(str(plain.get("path") or plain.get("reason") or ""))

    def withdraw(self) -> None:
        """Take it back, if nobody has taken it."""
        remove(_path(self.folder, self.pid, "request"))


def ask(pid: int, steps: int = STEPS, environ: Mapping[str, str] = os.environ) -> TraceRequest:
    """Ask the Monitor in a process of this user for a trace of its next steps; raise GpulseError if it has none."""
    if not 1 <= steps <= MOST_STEPS:
        raise UsageError(f"{steps} is not a number of steps from 1 to {MOST_STEPS};", f"try {STEPS}.")
    folder = folder_of(pid, environ)
    if folder is None:
        raise GpulseError(f"process {pid} has no Monitor of yours that could write a trace.", _remedy(environ))
    number = os.urandom(8).hex()
    with replaced(_path(folder, pid, "request")) as file:
        file.write(json.dumps({"id": number, "steps": steps, "time": time.time()}).encode())
    return TraceRequest(pid, folder, number)


def take(pid: int, folder: str) -> tuple[str, int] | None:
    """Return id and steps of a new request to a process, and remove it; None if there is none."""
    path = _path(folder, pid, "request")
    if not os.path.lexists(path):  # once per second: nothing more is asked of the disk
        return None
    plain = _read(path)
    remove(path)
    number, steps, asked = (None if plain is None else plain.get(key) for key in ("id", "steps", "time"))
    if not isinstance(number, str) or not isinstance(steps, int) or not isinstance(asked, (int, float)):
        return None
    return (number[:64], steps) if abs(time.time() - asked) < _OLD and 1 <= steps <= MOST_STEPS else None


def reply(pid: int, folder: str, number: str, state: str, **more: str) -> None:
    """Answer a request; whatever fails, the program goes on."""
    try:
        with replaced(_path(folder, pid, "answer")) as file:
            file.write(json.dumps({"id": number, "state": state, **more}).encode())
    except OSError:
        pass


def ask_stacks(pid: int, environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """Ask the Monitor in a process of this user where GPU time was lost; return its last answer, a tree of frames.

    None before the first answer, which takes a second or so, and where there is no Monitor.
    """
    if (folder := folder_of(pid, environ)) is None:
        return None
    with replaced(_path(folder, pid, "look")):
        pass  # that it is there says everything
    return _read(_path(folder, pid, "stacks"), _LARGEST_TREE)


def show_stacks(pid: int, folder: str, tree: Callable[[], dict[str, Any]]) -> None:
    """Answer who asks for stacks, if somebody does; `tree` makes the answer."""
    path = _path(folder, pid, "look")
    if not os.path.lexists(path):
        return
    remove(path)
    try:
        with replaced(_path(folder, pid, "stacks")) as file:
            file.write(json.dumps(tree(), separators=(",", ":")).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def forget(pid: int, folder: str) -> None:
    """Remove the files of a process that ends."""
    for name in ("request", "answer", "look", "stacks"):
        remove(_path(folder, pid, name))


def _remedy(environ: Mapping[str, str]) -> str:
    others = sorted(presences(environ))
    if others:
        return f"These have: {', '.join(map(str, others[:8]))}."
    return "Use gpulse.Monitor in the program, and count steps with monitor.batches or monitor.step."


def _path(folder: str, pid: int, name: str) -> str:
    return os.path.join(folder, f"{pid}.{name}.json")


def _read(path: str, most: int = _LARGEST) -> dict[str, Any] | None:
    try:
        owner = os.stat(os.path.dirname(path)).st_uid
    except OSError:
        return None
    return read_private(path, {0, os.geteuid(), owner}, most)


class StepTraces:
    """Looks for requests in `poll`, about once per second, and traces in the thread that makes the steps.

    Requests are in `folder`. `written` is called with the path of each trace, in a thread of its own.
    """

    def __init__(
        self, run: str, ledger: Ledger, sinks: Sequence[Sink], folder: str, written: Callable[[str], None]
    ) -> None:
        self._run = run
        self._ledger = ledger
        self._sinks = sinks
        self.folder = folder
        self._written = written
        self._pid = os.getpid()
        self._trace: StepTrace | None = None

    def poll(self) -> None:
        """Take a new request; one at a time."""
        if self._trace is not None and not self._trace.over:
            return
        if (asked := take(self._pid, self.folder)) is not None:
            number, steps = asked
            self.trace(lambda state, **more: reply(self._pid, self.folder, number, state, **more), steps)

    def trace(self, answer: Callable[..., None], steps: int = STEPS) -> bool:
        """Trace the next steps and tell `answer` how that goes; return False, and do nothing, while another trace is under way."""
        if self._trace is not None and not self._trace.over:
            return False
        if "torch" not in sys.modules:
            answer("failed", reason="the program does not use torch, whose profiler would trace it")
            return True
        answer("waiting")
        self._trace = StepTrace(
            steps, self._path(), self._ledger, lambda *state, **more: self._told(answer, *state, **more)
        )
        self._ledger.at_step = (*self._ledger.at_step, self._trace.at_step)
        return True

    def close(self) -> None:
        """End a trace that is under way, in the thread that began it, and remove the files of requests."""
        if self._trace is not None:
            self._trace.close()
        forget(self._pid, self.folder)

    def _told(self, answer: Callable[..., None], state: str, **more: str) -> None:
        answer(state, **more)
        if state == "done":
            self._written(more["path"])

    def _path(self) -> str:
        """Return where to write: beside what the sinks write, in the folder of TensorBoard's run as its profiler page expects it."""
        step = self._ledger.rhythm.reached or 0
        name = f"gpulse-{self._run}-step{step}.pt.trace.json.gz".replace("/", "_")
        return os.path.join(folder_beside(self._sinks), name)


class StepTrace:
    """One trace. `at_step` is called after every step; the first call begins it, and the call after `steps` more ends it."""

    def __init__(self, steps: int, path: str, ledger: Ledger, answer: Callable[..., None]) -> None:
        self._left = steps
        self._path = path
        self._ledger = ledger
        self._answer = answer
        self._profiler: Any = None
        self._mark: Any = None
        self._thread = 0
        self.over = False

    def at_step(self) -> None:
        """Begin, count a step, or end."""
        try:
            if self._profiler is None:
                self._begin()
            elif threading.get_ident() == self._thread:
                self._left -= 1
                self._unmark()
                if self._left:
                    self._mark_step()
                else:
                    self._end()
        except Exception as error:  # noqa: BLE001  # an error in torch must not affect the program
            self._fail(error)

    def close(self) -> None:
        """End early: the program stops, so the trace has fewer steps."""
        if self._profiler is not None and not self.over and threading.get_ident() == self._thread:
            try:
                self._unmark()
                self._end(wait=True)
            except Exception as error:  # noqa: BLE001  # as above
                self._fail(error)

    def _begin(self) -> None:
        profiler = part_of_torch("profiler")
        if part_of_torch("autograd.profiler")._is_profiler_enabled:
            raise RuntimeError("the program is using it itself")
        made = profiler.profile(activities=profiler.supported_activities())
        made.start()
        self._profiler, self._thread = made, threading.get_ident()
        self._answer("tracing")
        self._mark_step()

    def _mark_step(self) -> None:
        name = f"ProfilerStep#{(self._ledger.rhythm.reached or 0) + 1}"  # the name that viewers know
        self._mark = part_of_torch("profiler").record_function(name)
        self._mark.__enter__()

    def _unmark(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def _end(self, wait: bool = False) -> None:
        self._detach()
        self._profiler.stop()
        self._answer("writing")
        writer = threading.Thread(target=self._write, name="gpulse-trace", daemon=True)  # for seconds; training goes on
        try:
            writer.start()
        except RuntimeError:  # the interpreter is exiting
            self._write()
        else:
            writer.join(5.0 if wait else 0.0)

    def _write(self) -> None:
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._profiler.export_chrome_trace(self._path)
            os.chmod(self._path, 0o600)
        except Exception as error:  # noqa: BLE001  # a full disk, for example
            self._answer("failed", reason=f"{self._path} cannot be written: {error}")
        else:
            self._answer("done", path=self._path)
        self._profiler = None

    def _detach(self) -> None:
        self.over = True
        self._ledger.at_step = tuple(one for one in self._ledger.at_step if one != self.at_step)

    def _fail(self, error: Exception) -> None:
        self._detach()
        self._answer("failed", reason=f"torch's profiler could not be used: {error}")


class TraceSignal:
    """A signal that asks for a trace of the next steps, where the program has no handler of its own for it.

    A process that makes no traces ignores it: a signal to all ranks of a job must not end those.
    """

    def __init__(self, number: int, ledger: Ledger, keeper: RunKeeper | None, say: Callable[[str], None]) -> None:
        self._number = number
        self._keeper = keeper
        self._pid = os.getpid()
        self._before: Any = None
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        if threading.current_thread() is not threading.main_thread():
            say(
                f"{name} cannot ask for traces, since the Monitor was not started in the main thread; use `gpulse trace`."
            )
        elif signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
            say(f"{name} has a handler of this program, which stays; ask for traces with `gpulse trace {self._pid}`.")
        else:
            self._before = signal.signal(number, self._asked)
            ledger.at_stop = (*ledger.at_stop, self.close)

    def close(self) -> None:
        """Give the signal back, unless the program has set a handler meanwhile."""
        ours = self._before is not None and signal.getsignal(self._number) == self._asked
        if ours and threading.current_thread() is threading.main_thread():
            signal.signal(self._number, self._before)

    def _asked(self, *_: object) -> None:
        if self._keeper is not None and os.getpid() == self._pid:
            self._keeper.signaled = True
