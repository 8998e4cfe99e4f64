"""What a program reports: steps, items, tokens and waits, which are read as rates, and marks."""

from __future__ import annotations

import threading
import time
from collections import deque

from ..sinks.base import Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.summary import Mfu
    from .ledger import Ledger
    from .messages import AgentSample

_STALE = 5.0  # seconds beyond two intervals after which a sample no longer describes the present
_MOST = 10_000  # marks that are kept; beyond, the oldest are dropped
_CLOSEST = 0.1  # seconds between two calls below which a rate would mostly be noise


class Rhythm:
    """The program's progress since the start: steps, items, tokens and time spent waiting for data.

    `mfu` returns the model FLOPs utilization at a number of steps per second, None if it is not asked for.
    """

    __slots__ = ("initial", "items", "mfu", "steps", "tokens", "waited")

    def __init__(self, initial: int = 0, mfu: Callable[[float], Mfu | None] | None = None) -> None:
        self.mfu = mfu
        self.initial = initial  # steps before the run was continued
        self.steps = 0
        self.items = 0.0
        self.tokens = 0.0
        self.waited = 0.0

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
        values: dict[str, float] = {}
        if rhythm.steps:
            values["train/steps_per_second"] = steps
        if rhythm.items:
            values["train/items_per_second"] = items
        if rhythm.tokens:
            values["train/tokens_per_second"] = tokens
        if rhythm.waited:
            values["train/data_wait"] = min(100.0, 100.0 * waited)
        if rhythm.steps and rhythm.mfu is not None and (found := rhythm.mfu(steps)) is not None:
            values |= {} if found.rate is None else {"train/flops_per_second": found.rate}
            values |= {} if found.percent is None else {"train/mfu": found.percent}
        return values


class Collector:
    """Converts the newest sample to values by tag, with the program's progress since the previous call; thread-safe."""

    def __init__(self, keys: list[str] | None) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._sample: AgentSample | None = None
        self._values: dict[str, float] = {}
        self._ledger: Ledger | None = None
        self._reader = RhythmRates(Rhythm())
        self._at = 0.0
        self._rates: dict[str, float] = {}

    def values(self, ledger: Ledger, interval: float) -> dict[str, float]:
        """Return the values now; those of the GPUs are left out if the last sample is too old."""
        now, sample = time.monotonic(), ledger.latest
        with self._lock:
            if ledger is not self._ledger:
                self._ledger, self._at, self._reader, self._rates = (
                    ledger,
                    ledger.started,
                    RhythmRates(ledger.rhythm),
                    {},
                )
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

        complete = sample.replace(snapshot=ledger.held.complete(sample.snapshot))
        return Tags([*ledger.ordinals] or None, self._keys).values(complete)


class Marks:
    """Marks in order; thread-safe. `all` has the newest ten thousand, `new` those since its last call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: deque[Mark] = deque(maxlen=_MOST)
        self._new: deque[Mark] = deque(maxlen=_MOST)

    def add(self, name: str, value: object) -> None:
        """Add a mark. Its value is converted at once, so that nothing of the program is kept alive."""
        mark = Mark(name, plain(value), time.time())
        with self._lock:
            self._all.append(mark)
            self._new.append(mark)

    def new(self) -> tuple[Mark, ...]:
        """Return the marks since the last call."""
        with self._lock:
            fresh = tuple(self._new)
            self._new.clear()
        return fresh

    def all(self) -> tuple[Mark, ...]:
        """Return all marks that are kept."""
        with self._lock:
            return tuple(self._all)


def plain(value: object) -> float | str | None:
    """Return a value as a number, if it is one: a tensor or array with one element, or a scalar of numpy; else as text."""
    if value is None or type(value) in (int, float, bool, str):
        return value  # type: ignore[return-value]
    for convert in ("item", "__index__", "__float__"):  # tensors and arrays, other integers, other numbers
        try:
            number = getattr(value, convert)()
        except Exception:  # noqa: BLE001  # several elements, no such method, or whatever the program's class raises
            continue
        if isinstance(number, (int, float)):
            return number
    try:
        return str(value)
    except Exception:  # noqa: BLE001
        return type(value).__name__
