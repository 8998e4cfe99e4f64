"""Stacks of a running process over time: py-spy records in pieces of some seconds, each of which it writes when it is over.

A `py-spy dump` per sample would cost 5 to 11 ms of CPU each; recording costs 0.3 to 0.7 ms per sample, and 12 ms per piece. A trace
tells when a stack changed, as seen at the next sample, so that samples must be close to tell what the GPU did meanwhile: of phases of
120 and 150 ms, 78 % of the time is told right with 20 samples per second, 85 % with 50, and 95 % with 100.
"""

from __future__ import annotations

import math
import random
import re
import signal
import threading
import time

from ..model.stacks import Stack
from .py_spy import PySpy, StacksUnavailable, frame_of, owner_of, refusal, runs_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from ..model.stacks import Frame, Role

RATE = 200  # samples per second, at most; py-spy draws the time to the next at random
_FIRST_RATE, _SLOWEST = 50.0, 10.0
_BUDGET = 0.05  # of a core: a process with many threads is sampled less often
_FIRST = 2.0  # seconds of the first piece; after it, it is known what a sample costs and whether there are workers
_PIECE = 5.0  # the join with the GPU's activity keeps stacks for 20 s
_ALL = 60.0  # seconds for which a process is read without pauses
_PAUSES = 10.0, 40.0  # seconds between two pieces after that, at random, so that it is not in step with the program
_GRACE = 2.0  # seconds for py-spy to write a piece after it was told to stop
_LATE = 3.0  # times as long as expected until a piece is given up: the time between samples is random
_DEEPEST = 200  # frames
_LONGEST = 300  # characters of a name
_THREAD = re.compile(r"thread \((\w+)\)(?:: (.*))?", re.DOTALL)
STEP = 0.025  # seconds that one stack stands for


class StackRecorder:
    """Reads the stacks of processes until stopped, each in a thread of its own.

    `take` is called in these threads with the pid, what its threads did moment by moment, and until when that is known: forever
    once the process is no longer read. `problem` is why a process cannot be read, `worker_problem` the same of a worker; that
    a process ends is no problem.
    """

    def __init__(self, take: Callable[[int, list[list[Stack]], float], None]) -> None:
        self.problem = ""
        self.worker_problem = ""
        self._take = take
        self._over = threading.Event()
        self._running: dict[int, PySpy | None] = {}  # by pid of the process that is read
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def follow(self, pid: int, role: Role = "main") -> bool:
        """Read a process from now on; return False for one that is read already, or was."""
        with self._lock:
            if pid in self._running or self._over.is_set():
                return False
            self._running[pid] = None
            thread = threading.Thread(target=self._follow, args=(pid, role), name=f"gpulse-stacks-{pid}", daemon=True)
            self._threads.append(thread)
        thread.start()
        return True

    def stop(self) -> None:
        """Take what was seen last, and stop; returns within some seconds, whatever py-spy does."""
        with self._lock:
            self._over.set()
            running = [one for one in self._running.values() if one is not None]
        for one in running:
            one.stop()
        until = time.monotonic() + _GRACE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        for one in running:
            one.stop(signal.SIGKILL)

    def _follow(self, pid: int, role: Role) -> None:
        seconds, rate, first = _FIRST, _FIRST_RATE, time.monotonic()
        try:
            while not self._over.is_set():
                began = time.time()
                events, cpu = self._piece(pid, seconds, round(rate))
                until = time.time()
                self._take(pid, [*moments_of(events, began - 1.0 / rate, role)], until)
                rate = affordable(rate, cpu / max(until - began, 1e-3))
                seconds = _PIECE
                if time.monotonic() - first > _ALL:
                    pause = random.uniform(*_PAUSES)
                    self._take(pid, [], until + pause)
                    self._over.wait(pause)
        except StacksUnavailable as error:
            if not self._over.is_set() and owner_of(pid) is not None:
                self._note(role, str(error))
        except Exception as error:  # noqa: BLE001  # whatever it is, the program and its summary go on
            self._note(role, f"the stacks of process {pid} cannot be read: {error or type(error).__name__}.")
        finally:
            self._take(pid, [], math.inf)

    def _note(self, role: Role, problem: str) -> None:
        if role == "worker":
            self.worker_problem = self.worker_problem or problem
        else:
            self.problem = self.problem or problem

    def _piece(self, pid: int, seconds: float, rate: int) -> tuple[list[Any], float]:
        """Return what py-spy recorded in some seconds, and the CPU time it used; raise StacksUnavailable when it cannot."""
        import json

        arguments = ["record", "--nonblocking", "--idle", "--threads", "--full-filenames", "--format", "chrometrace"]
        arguments += ["--rate", str(rate), "--duration", f"{seconds:.0f}", "--output", "/dev/fd/3", "--pid", str(pid)]
        running = PySpy(arguments)
        with self._lock:
            self._running[pid] = running
        if self._over.is_set():
            running.stop()
        code, text, errors = running.finish(_LATE * seconds + _GRACE)
        if code:
            raise refusal(pid, code, errors)
        try:
            events = json.loads(text)
        except ValueError:
            events = []
        return events if isinstance(events, list) else [], running.cpu


def affordable(rate: float, used: float) -> float:
    """Return the samples per second that fit the budget, if `rate` of them used this share of a core."""
    return max(_SLOWEST, min(RATE, rate * _BUDGET / max(used, 1e-4)))


class _Thread:
    """One thread of a trace: the frames that are open, and every stack that it had, from when on."""

    def __init__(self) -> None:
        self.label = ""
        self.pid = 0
        self.frames: list[Frame] = []
        self.changes: list[tuple[float, tuple[Frame, ...]]] = []

    def add(self, event: Mapping[str, Any], moment: float) -> None:
        name, given = event.get("name"), event.get("args")
        name, given = name if isinstance(name, str) else "", given if isinstance(given, dict) else {}
        if _THREAD.fullmatch(name) and not given.get("filename"):
            self.label = name
        elif event.get("ph") == "B":
            self.frames.append(frame_of(name, given.get("filename"), given.get("line")))
        elif event.get("ph") == "E" and self.frames:
            self.frames.pop()
        if self.changes and self.changes[-1][0] == moment:  # the events of one sample have one time
            self.changes.pop()
        self.changes.append((moment, tuple(self.frames[:_DEEPEST])))


def moments_of(events: Iterable[Any], began: float, role: Role) -> Iterator[list[Stack]]:
    """Yield the stacks of all threads in a Chrome trace of one process, every 25 ms; of a worker only the main thread's.

    A trace holds changes, which it tells at the first sample after each: `began` is the time it counts from, less the mean time
    between two samples.
    """
    threads: dict[object, _Thread] = {}
    first = last = None
    for event in events:
        if not isinstance(event, dict) or not isinstance(at := event.get("ts"), (int, float)):
            continue
        last = began + at / 1e6
        first = last if first is None else first
        thread = threads.setdefault(event.get("tid"), _Thread())
        thread.pid = pid if isinstance(pid := event.get("pid"), int) else thread.pid
        thread.add(event, last)
    if first is None or last is None:
        return
    mains = _mains([*threads.values()])
    shown = mains if role == "worker" else [*threads.values()]
    places = [0] * len(shown)
    for step in range(round((last - first) / STEP)):
        time = first + (step + 0.5) * STEP
        moment = []
        for at, thread in enumerate(shown):
            changes = thread.changes
            while places[at] + 1 < len(changes) and changes[places[at] + 1][0] <= time:
                places[at] += 1
            since, frames = changes[places[at]]
            if frames and since <= time:
                kind: Role = role if role == "worker" or thread in mains else "thread"
                moment.append(Stack(time, frames, STEP, kind, _named(thread.label), thread.pid))
        if moment:
            yield moment


def _mains(threads: list[_Thread]) -> list[_Thread]:
    """Return the main thread: the one so named or with the number of the process, else one that runs a module, else all."""
    named = [one for one in threads if _named(one.label) == "MainThread" or _number(one.label) == str(one.pid)]
    modules = [one for one in threads if any(runs_module(frames) for _, frames in one.changes)]
    return named or modules or threads


def _named(label: str) -> str:
    return (found[2] or "")[:_LONGEST] if (found := _THREAD.fullmatch(label)) else ""


def _number(label: str) -> str:
    return found[1] if (found := _THREAD.fullmatch(label)) else ""
