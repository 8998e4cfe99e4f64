"""A trace of the next steps by torch's own profiler, started and stopped between steps, when somebody asks for it."""

from __future__ import annotations

import os
import signal
import sys
import threading

from ..torch import part_of_torch
from . import trace_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..sinks.base import Sink
    from .ledger import Ledger
    from .run_keeper import RunKeeper


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
        if (asked := trace_request.take(self._pid, self.folder)) is not None:
            number, steps = asked
            self.trace(lambda state, **more: trace_request.reply(self._pid, self.folder, number, state, **more), steps)

    def trace(self, answer: Callable[..., None], steps: int = trace_request.STEPS) -> bool:
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
        trace_request.forget(self._pid, self.folder)

    def _told(self, answer: Callable[..., None], state: str, **more: str) -> None:
        answer(state, **more)
        if state == "done":
            self._written(more["path"])

    def _path(self) -> str:
        """Return where to write: beside what the sinks write, as TensorBoard's profiler page expects it, else in the working folder."""
        step = self._ledger.rhythm.reached or 0
        name = f"gpulse-{self._run}-step{step}.pt.trace.json.gz".replace("/", "_")
        for sink in self._sinks:
            if (folder := getattr(sink, "logdir", None)) is not None:
                return os.path.join(os.path.abspath(os.fspath(folder)), name)
            if (path := getattr(sink, "path", None)) is not None:
                return os.path.join(os.path.dirname(os.path.abspath(os.fspath(path))), name)
        return os.path.abspath(name)


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
        writer = threading.Thread(
            target=self._write, name="gpulse-trace", daemon=True
        )  # takes seconds; training goes on
        writer.start()
        if wait:
            writer.join(5.0)

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

    A process that makes no traces ignores it: whoever signals all ranks of a job must not end those.
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
