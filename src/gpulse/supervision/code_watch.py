"""The lines of code at which the GPUs of a program waited, for programs that do not use gpulse."""

from __future__ import annotations

import linecache
import threading
from collections import deque

from ..analysis.code_lines import code_lines
from ..analysis.lost_time import CodeTally
from ..analysis.own_lines import LOADS, call_in, library_of, own_line
from ..sources.processes import LinuxMachine
from ..sources.py_spy import StacksUnavailable, check_own, program
from ..sources.stack_recorder import StackRecorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..model.catalog import Gpu
    from ..model.stacks import Frames, Stack, TimedStack

_PROCESSES = (
    8  # of a program that are read: py-spy takes up to 5 % of a core for each in the first minute, then a sixth of that
)
_WORKERS = 2  # of each process; they all do the same
_WAITING = 0.1  # of the time that the main thread must wait for its workers for them to be read
_STRETCH = 10.0  # by how much stacks are stretched to the seconds of the GPU, since there are pauses between them
_LATE = 15.0  # seconds for which samples wait for the stacks of their time


class CodeWatch:
    """Joins samples of GPUs with the stacks of the processes on them, which py-spy reads meanwhile.

    `root` is the process that counts where the processes on the GPUs cannot be told. `problem` is why there are no lines.
    """

    def __init__(self, root: int) -> None:
        self.problem = ""
        self._root = root
        self._lock = threading.Lock()
        self._machine = LinuxMachine()
        self._recorder = StackRecorder(self._take)
        self._processes: dict[int, _ReadProcess] = {}
        self._owners: dict[int, int] = {}  # of workers, the process that they work for
        try:
            program()
        except StacksUnavailable as error:
            self.problem = str(error)

    def add(self, time: float, gpus: Iterable[Gpu], own: Collection[int] | None) -> None:
        """Take a sample, at a time in seconds since 1970; `own` are the processes of the program on them, None if that is unknown."""
        if self.problem:
            return
        gpus = [*gpus]
        for pid in [self._root] if own is None else sorted(own)[:_PROCESSES]:
            self._follow(pid)
        with self._lock:
            for process in self._processes.values():
                process.samples.append((time, gpus, None if own is None else {process.pid}))
                process.settle(time - _LATE)

    def stop(self) -> list[TimedStack]:
        """Stop reading and return the stacks of all processes with the seconds in which their GPUs waited and computed."""
        self._recorder.stop()
        with self._lock:
            stacks: list[TimedStack] = []
            for process in self._processes.values():
                process.settle(float("inf"))
                stacks += process.tally.stacks()
        lines = code_lines(stacks)
        waits = bool(lines) and lines[0].call in LOADS
        self.problem = self.problem or self._recorder.problem or (self._recorder.worker_problem if waits else "")
        return stacks

    def _follow(self, pid: int) -> None:
        if pid in self._processes or len(self._processes) >= _PROCESSES:
            return
        try:
            check_own(pid)
        except StacksUnavailable as error:
            self.problem = str(error)
            return
        with self._lock:
            self._processes[pid] = _ReadProcess(pid)
        self._recorder.follow(pid)

    def _take(self, pid: int, readings: list[list[Stack]], until: float) -> None:
        """Take what one process did, in the thread that reads it."""
        workers: list[int] = []
        with self._lock:
            process = self._processes[self._owners.get(pid, pid)]
            waited = process.take(pid, readings, until)
            if readings and pid == process.pid and waited >= _WAITING * len(readings):
                workers = self._machine.family(pid)[1:]
                alive = [one for one in workers if one in process.known_until]
                workers = [one for one in workers if one not in process.known_until][: max(0, _WORKERS - len(alive))]
                for worker in workers:
                    self._owners[worker] = pid
                    process.known_until[worker] = readings[-1][0].time
        for worker in workers:
            self._recorder.follow(worker, "worker")


class _ReadProcess:
    """One process: its tally, the samples that wait for stacks, and up to when the stacks of it and its workers are known."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.tally = CodeTally(_STRETCH)
        self.samples: deque[tuple[float, list[Gpu], set[int] | None]] = deque()
        self.known_until: dict[int, float] = {pid: 0.0}

    def take(self, pid: int, readings: list[list[Stack]], until: float) -> int:
        """Take stacks of the process or a worker; return at how many readings the main thread waited for workers."""
        waited = 0
        for reading in readings:
            stacks = [stack._replace(frames=with_call(stack.frames)) for stack in reading]
            self.tally.add_stacks(stacks)
            main = next((stack for stack in stacks if stack.role == "main"), None)
            line = None if main is None else own_line(main.frames)
            waited += line is not None and line.call in LOADS
        self.known_until[pid] = until
        self.settle(min(self.known_until.values()))
        return waited

    def settle(self, until: float) -> None:
        """Hand on the samples whose stacks are known."""
        while self.samples and self.samples[0][0] <= until:
            self.tally.add_sample(*self.samples.popleft())


def with_call(frames: Frames) -> Frames:
    """Return a stack in which the innermost line of the program itself names the call it is in, as far as its source tells."""
    for at in range(len(frames) - 1, -1, -1):
        frame = frames[at]
        if library_of(frame.file) is None:
            called = frame._replace(call=call_in(linecache.getline(frame.file, frame.line)))
            return (*frames[:at], called, *frames[at + 1 :])
    return frames
