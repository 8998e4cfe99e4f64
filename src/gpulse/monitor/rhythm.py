"""What a program reports: batches, steps, items, tokens and waits, which are read as rates, and marks."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextvars import ContextVar

from ..sinks.base import Mark
from ..value import Value
from .reported import plain, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Generic, TypeVar

    from ..analysis.summary import Mfu
    from ..sampling.clock import SystemClock
    from .ledger import Ledger
    from .messages import AgentSample
    from .monitor import Monitor

    T = TypeVar("T")

    class _Loop(Generic[T]): ...

else:

    class _Loop:
        __class_getitem__ = classmethod(type(list[int]))


_STALE = 5.0  # seconds beyond two intervals after which a sample no longer describes the present
_MOST = 10_000  # marks that are kept; beyond, the oldest are dropped
_CLOSEST = 0.1  # seconds between two calls below which a rate would mostly be noise


class Rhythm(Value):
    """The program's progress since the start: steps, items, tokens and time spent waiting for data.

    `initial` are the steps before the run was continued. `mfu` returns the model FLOPs utilization at a number of steps per second,
    None if it is not asked for.
    """

    initial: int = 0
    mfu: Callable[[float], Mfu | None] | None = None
    steps: int = 0
    items: float = 0.0
    tokens: float = 0.0
    waited: float = 0.0

    def resume(self, step: int) -> None:
        """Continue after this step: the next one has the number after it."""
        self.initial = step - self.steps

    @property
    def reached(self) -> int | None:
        """The number of the last step of the whole run; None before the first."""
        return self.initial + self.steps or None


class RhythmRates:
    """The rates of a rhythm between the calls of one reader."""

    def __init__(self, rhythm: Rhythm) -> None:
        self._rhythm = rhythm
        self._before = (0, 0.0, 0.0, 0.0)

    def since(self, seconds: float) -> dict[str, float]:
        """Return the rates since the last call, these seconds ago, by tag; what the program does not count is left out."""
        rhythm, before = self._rhythm, self._before
        self._before = rhythm.steps, rhythm.items, rhythm.tokens, rhythm.waited
        if seconds <= 0:
            return {}
        steps, items, tokens, waited = (
            (late - early) / seconds for early, late in zip(before, self._before, strict=True)
        )
        rates = (
            ("steps_per_second", rhythm.steps, steps),
            ("items_per_second", rhythm.items, items),
            ("tokens_per_second", rhythm.tokens, tokens),
            ("data_wait", rhythm.waited, min(100.0, 100.0 * waited)),
        )
        values = {f"train/{name}": rate for name, counted, rate in rates if counted}
        if rhythm.steps and rhythm.mfu is not None and (found := rhythm.mfu(steps)) is not None:
            values |= {} if found.rate is None else {"train/flops_per_second": found.rate}
            values |= {} if found.percent is None else {"train/mfu": found.percent}
        return values


class Collector:
    """Converts the newest sample to values by tag, with the program's progress since the previous call; thread-safe."""

    def __init__(self, keys: list[str] | None) -> None:
        self._keys = keys
        self._lock = threading.RLock()
        self._sample: AgentSample | None = None
        self._values: dict[str, float] = {}
        self._ledger: Ledger | None = None
        self._reader = RhythmRates(Rhythm())
        self._at = 0.0
        self._rates: dict[str, float] = {}

    def values(self, ledger: Ledger, interval: float) -> dict[str, float]:
        """Return the values now; those of the GPUs are left out if the last sample is too old."""
        now, sample = ledger.clock.monotonic(), ledger.latest
        with self._lock:
            if ledger is not self._ledger:
                self._ledger, self._at = ledger, ledger.started
                self._reader, self._rates = RhythmRates(ledger.rhythm), {}
            if now - self._at >= _CLOSEST:
                self._rates = self._reader.since(now - self._at)
                self._at = now
            if sample is None or now - sample.at > 2 * interval + _STALE:
                return dict(self._rates)
            if sample is not self._sample:
                self._sample, self._values = sample, self._tagged(ledger, sample)
            return {**self._values, **self._rates}

    def _tagged(self, ledger: Ledger, sample: AgentSample) -> dict[str, float]:
        from .samples import Tags  # with the catalog, which a program that does not ask need not load

        complete = sample.replace(snapshot=ledger.last_values.complete(sample.snapshot))
        return Tags([*ledger.ordinals] or None, self._keys, ledger.energy).values(complete)


class Marks:
    """Marks in order; thread-safe. Of those that nobody has taken, the newest ten thousand are kept."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._new: deque[Mark] = deque(maxlen=_MOST)

    def add(self, name: str, value: object) -> None:
        """Add a mark. Its value is converted at once, so that nothing of the program is kept alive."""
        mark = Mark(name, plain(value), self._clock.now())
        with self._lock:
            self._new.append(mark)

    def new(self) -> tuple[Mark, ...]:
        """Return the marks since the last call."""
        with self._lock:
            fresh = tuple(self._new)
            self._new.clear()
        return fresh


class BatchInWork(Value):
    """A batch that the program works on; `counted` if the program has counted the step itself."""

    monitor: Monitor
    counted: bool = False


# the batches that a thread or a task of an event loop works on, the innermost loop last
_in_work: ContextVar[tuple[BatchInWork, ...]] = ContextVar("gpulse_batches", default=())


def counted_by_program(monitor: Monitor) -> None:
    """Record that the program has counted the step of the batch it works on."""
    for work in reversed(_in_work.get()):
        if work.monitor is monitor:
            work.counted = True
            return


def timed_next(batches: Iterator[T], waited: Callable[[float], None]) -> T:
    """Return the next batch, and call `waited` with the seconds that it took to come."""
    began = time.perf_counter()
    batch = next(batches)
    waited(time.perf_counter() - began)
    return batch


class Batches(_Loop["T"]):
    """Iterates over the batches of a loader, as often as the loader can; `len()` is the loader's.

    A batch is counted when the program asks for the next one or leaves the loop.
    """

    def __init__(
        self,
        monitor: Monitor,
        loader: Iterable[T],
        items: float | Callable[[T], float] = 0,
        steps: bool = True,
        tokens: float | Callable[[T], float] = 0,
    ) -> None:
        self._monitor = monitor
        self._loader = loader
        self._items = items
        self._tokens = tokens
        self._steps = bool(plain(steps))

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # a TypeError, if the loader has none

    def __iter__(self) -> Iterator[T]:
        batches = iter(self._loader)
        while True:
            try:
                batch = timed_next(batches, self._monitor.waited)
            except StopIteration:
                return
            items, tokens = self._count("items", self._items, batch), self._count("tokens", self._tokens, batch)
            work = BatchInWork(self._monitor)
            _in_work.set((*_in_work.get(), work))
            try:
                yield batch
            finally:  # also when the program leaves the loop
                del batch  # while the next one is loaded, nothing keeps this one in memory
                self._end(work, items, tokens)

    def _count(self, name: str, given: float | Callable[[Any], float], batch: Any) -> float:
        found: object = given
        if callable(given):
            try:
                found = given(batch)
            except Exception as error:  # noqa: BLE001  # the training goes on without this figure
                self._monitor._say(
                    f"batches: {name} failed ({type(error).__name__}: {text(error)}); they are not counted."
                )
                return 0.0
        return self._monitor._numbers.read(f"batches: {name}", found) or 0.0

    def _end(self, work: BatchInWork, items: float, tokens: float) -> None:
        _in_work.set(tuple(each for each in _in_work.get() if each is not work))
        if self._steps and not work.counted and (ledger := self._monitor.ledger) is not None:
            ledger.step(1, items, tokens)
