"""The course of a training as every framework's callback tells it: begin, phases, batches, end."""

from __future__ import annotations

import sys
import threading
import time
from functools import wraps

from ..monitor.monitor import Monitor
from ..sinks.base import Sink
from ..sinks.points import Means, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from ..monitor.monitor import PhaseContext
    from ..sinks.base import Sample

    Hook = TypeVar("Hook", bound=Callable[..., Any])

_told: set[str] = set()  # hooks that have complained: their errors may differ in every step


def harmless(hook: Hook) -> Hook:
    """Return a hook that, instead of raising into the training, says once on stderr what went wrong, and returns None."""

    @wraps(hook)
    def guarded(*arguments: Any, **named: Any) -> Any:
        try:
            return hook(*arguments, **named)
        except Exception as error:  # noqa: BLE001  # whatever it is, the training is worth more
            _complain(hook.__qualname__, f"{type(error).__name__}: {error}")

    return guarded  # type: ignore[return-value]


class Course:
    """One callback's monitor, a fresh one for every training; `monitor` is the one of this training or the last.

    A copy, also by pickle, has the same sinks and options and runs nothing. Its methods never raise and belong to the thread
    that trains; only `batch_end` may come from others, and late. The time from the end of the last batch under way to the
    next `batch_begin` counts as waiting for data. `log` keeps what `arrived` gives.
    """

    def __init__(self, sinks: Sink | Iterable[Sink], options: dict[str, Any], log: bool = False) -> None:
        self._sinks: list[Sink] = [*sinks] if hasattr(sinks, "__iter__") else [sinks]
        self._options = options
        self._log = log
        self._arrivals = Arrivals()
        self._phases: list[PhaseContext] = []
        self._lock = threading.Lock()
        self._thread = 0
        self._under_way = 0
        self._waits_since: float | None = None
        self._uncounted = 0
        self.reached = 0
        self.monitor = Monitor(self._sinks, **options)  # made here, so that a wrong option is heard before the training

    def __reduce__(self) -> tuple[type[Course], tuple[Any, ...]]:
        return Course, (self._sinks, self._options, self._log)

    def __deepcopy__(self, memo: object) -> Course:
        return Course(self._sinks, self._options, self._log)  # an open sink has files and threads that cannot be copied

    # --- life and phases

    @harmless
    def begin(self, phase: str, *more: Sink) -> None:
        """Start a monitor, with some more sinks, in a phase or none; one that still runs, as after an error, is stopped first."""
        self.end()
        self._thread = threading.get_ident()
        self._arrivals = Arrivals()
        self._uncounted = self.reached = 0
        own = [self._arrivals] if self._log else []
        self.monitor = Monitor([*self._sinks, *more, *own], **self._options).start()
        self._open(phase)
        self.resume()

    @harmless
    def end(self, error: BaseException | None = None) -> None:
        """Stop, noting what the training failed with; doing it again does nothing."""
        if error is not None:
            self.monitor.mark("failed", type(error).__name__)
        if threading.get_ident() == self._thread:  # phases belong to their thread, and stopping closes them as well
            while len(self._phases) > 1:
                self._phases.pop().__exit__()
            self._count()
            for phase in self._phases:
                phase.__exit__()
        self._phases = []
        self.monitor.stop()

    @harmless
    def enter(self, name: str) -> None:
        """Begin a phase within the one there is, or the whole where there is none; from now on its first batch is waited for."""
        if not self._phases and self.monitor.ledger is None:
            self.begin(name)
        else:
            self._open(name)
            self._waits_since = time.perf_counter()

    @harmless
    def leave(self) -> None:
        """End the innermost phase, and with the outermost everything."""
        if len(self._phases) <= 1:
            self.end()
        else:
            self._phases.pop().__exit__()
            self._waits_since = None
            self._count()

    def _open(self, name: str) -> None:
        if name:
            phase = self.monitor.phase(name)
            phase.__enter__()
            self._phases.append(phase)

    @property
    def depth(self) -> int:
        """How many phases are open."""
        return len(self._phases)

    @harmless
    def mark(self, name: str, value: float | str | None = None) -> None:
        """Note a moment."""
        self.monitor.mark(name, value)

    # --- batches

    def batch_begin(self) -> None:
        """Note that a batch has come."""
        now = time.perf_counter()
        with self._lock:
            since = None if self._under_way else self._waits_since
            self._under_way += 1
            self._waits_since = None
        self._count()
        if since is not None:
            self.monitor.waited(now - since)

    def batch_end(self, reached: int | None = None) -> None:
        """Note that a batch is done, and the number of steps that are done now; None when it is none of the training's."""
        with self._lock:
            self._under_way = max(0, self._under_way - 1)
            self._waits_since = time.perf_counter()
        self.reach(reached)

    def reach(self, reached: int | None) -> None:
        """Count the steps up to a number; one that is not beyond the last counts nothing."""
        with self._lock:
            if reached is not None and reached > self.reached:
                self._uncounted += reached - self.reached
                self.reached = reached
        if threading.get_ident() == self._thread:
            self._count()

    def at(self, reached: int) -> None:
        """Say at which number of steps this training begins: those before it are none of its own."""
        self.reached = reached

    def resume(self) -> None:
        """Say that nothing is under way, and that the program waits for its next batch from now on."""
        with self._lock:
            self._under_way = 0
            self._waits_since = time.perf_counter()

    def pause(self) -> None:
        """Say that what happens until the next batch is not waiting for it, or not only."""
        self._waits_since = None

    def _count(self) -> None:
        """Count the steps where they belong: in the thread that trains and the outermost phase, however late they are told."""
        if len(self._phases) > 1:
            return
        with self._lock:
            steps, self._uncounted = self._uncounted, 0
        if steps:
            self.monitor.step(steps)

    # --- values

    def arrived(self) -> dict[str, float]:
        """Return the means of what came since the last call, by tag below gpulse; empty when nothing did."""
        return {under("gpulse", tag): value for tag, value in self._arrivals.take().items()}


class Arrivals(Sink):
    """Keeps samples for a logger that only the training's own thread may use; as means, so that a long wait costs no memory."""

    name = "callback"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._means: Means | None = None

    def write(self, sample: Sample) -> None:
        with self._lock:
            if self._means is None:
                self._means = Means()
            self._means.add(sample.values)

    def take(self) -> dict[str, float]:
        """Return the means and begin anew; 0.1 µs when nothing has come, which is nearly always."""
        if self._means is None:
            return {}
        with self._lock:
            means, self._means = self._means, None
        return {} if means is None else means.values()


def _complain(where: str, what: str) -> None:
    if where not in _told:
        _told.add(where)
        try:
            sys.stderr.write(f"gpulse: {what} (reported once; training continues).\n")
        except (OSError, ValueError, AttributeError):
            pass  # closed, or none
