"""What the screen shows that is read in other threads: live samples, the history, stacks, traces; and samples as plain lines."""

from __future__ import annotations

import threading
import time

from ...errors import GpulseError
from ...present.quantities import clock_text
from ...present.words import label
from ...sampling.bus import Bus
from ...units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from ...model.catalog import Gpu
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.stacks import Stack
    from ...monitor.presence import Presence
    from ...monitor.traces import TraceRequest
    from ...sampling.sampler import Sampler
    from ...sources.base import Machine
    from .state import State

_EVERY = 1.0  # seconds; reading a stack costs 11 ms of CPU
_PATIENCE = 5.0  # seconds to wait for a stack
_FINE, _COARSE = 900.0, 43_200.0  # seconds back: one point per second, then one per 30 s up to the longest chart
_POINTS = 1400  # of the coarse part
_EVENTS = 6 * 3600.0  # seconds back for the event line


class LiveFeed:
    """Live samples. `wake` is called in another thread when there is a new one."""

    patience = None  # there is nothing to do until a sample or a key arrives

    def __init__(self, sampler: Sampler, state: State, wake: Callable[[], None]) -> None:
        self._state = state
        self._bus = Bus(sampler, state.settings.interval)
        self._subscription = self._bus.subscribe(2, wake)
        self._bus.start()

    def samples(self) -> list[Snapshot]:
        """Return the new samples."""
        self._bus.interval = self._state.settings.interval
        found = []
        while (fresh := self._subscription.get(0)) is not None:
            found.append(fresh)
        if self._bus.over:
            self._state.message = "The recording has ended."
        return found

    def close(self) -> None:
        """Stop sampling."""
        self._bus.close()


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


class Recall:
    """Reads the history in its own thread and calls `done` there when it is complete.

    `series` are runs of points, oldest first: times, and values by UUID and metric. Empty if there is no history.
    """

    def __init__(self, keys: Sequence[str], done: Callable[[], None], path: str | None = None) -> None:
        self.series: list[tuple[Sequence[float], dict[tuple[str, str], Sequence[float]]]] = []
        self.events: list[Event] = []
        self.ready = False
        self._keys = tuple(keys)
        self._done = done
        self._path = path
        threading.Thread(target=self._read, name="gpulse-recall", daemon=True).start()

    def _read(self) -> None:
        from ...store.history import HistoryReader

        now = time.time()
        try:
            with HistoryReader(self._path) as reader:
                for start, end, points in ((now - _COARSE, now - _FINE, _POINTS), (now - _FINE, now, int(_FINE))):
                    found = reader.series(self._keys, None, start, end, points)
                    values: dict[tuple[str, str], Sequence[float]] = {(one.uuid, one.key): one.mean for one in found}
                    if found:
                        self.series.append((found[0].times, values))
                self.events = reader.events(now - _EVENTS, now)
        except (GpulseError, OSError):
            return  # no readable history: the screen starts empty
        self.ready = True
        self._done()


class TraceKey:
    """Asks the Monitor in a process for a trace of its next steps; one request at a time."""

    def __init__(self) -> None:
        self._request: TraceRequest | None = None
        self._state = ""

    def ask(self, pid: int | None, machine: Machine) -> str:
        """Ask, and return what to say."""
        from ...monitor.traces import STEPS, ask

        if pid is None:
            return "no process selected"
        if not machine.real or machine.foreign([pid]):
            return f"{pid} is not on this machine, or outside this container"
        try:
            self._request, self._state = ask(pid, STEPS), "waiting"
        except (GpulseError, OSError) as error:
            return str(error)
        return f"asked {pid} for a trace of its next {STEPS} steps"

    def news(self) -> str:
        """Return what has changed since it was last asked; empty if nothing has."""
        if self._request is None:
            return ""
        state, text = self._request.answer()
        if state == self._state:
            return ""
        self._state, pid = state, self._request.pid
        if state in ("done", "failed"):
            self._request = None
        return {
            "tracing": f"{pid} is being traced",
            "writing": f"{pid} is writing its trace",
            "done": f"trace of {pid}: {text}",
            "failed": f"no trace of {pid}: {text}",
        }.get(state, "")


def stream_lines(sampler: Sampler, interval: float, out: TextIO) -> None:
    """Write a line for every sample until the sampler or the reader ends it."""
    for snapshot in sampler.stream(interval):
        out.write(one_line(snapshot) + "\n")
        out.flush()


def one_line(snapshot: Snapshot) -> str:
    """Return a sample in one line: the time, then each GPU's use, memory, heat and power."""
    return "  ".join([clock_text(snapshot.time), *(_gpu(gpu) for gpu in snapshot.gpus)])


def _gpu(gpu: Gpu) -> str:
    name = label(gpu)
    if gpu.state != "ok":
        return f"{name}: {gpu.state}"
    parts = [
        "-" if gpu.utilization is None else f"{gpu.utilization:.0f}%",
        "-" if gpu.memory_used is None else size_text(gpu.memory_used),
        "-" if gpu.temperature is None else f"{gpu.temperature:.0f}C",
        "-" if gpu.power_draw is None else f"{gpu.power_draw:.0f}W",
    ]
    return f"{name}: {' '.join(parts)}"
