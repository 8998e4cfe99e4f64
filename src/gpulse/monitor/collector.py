"""The newest values by tag, for programs that log by hand."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ledger import Ledger
    from .request import AgentSample

_STALE = 5.0  # seconds beyond two intervals after which a sample no longer describes the present
_CLOSEST = 0.1  # seconds between two calls below which a rate would mostly be noise


class Collector:
    """Converts the newest sample to values by tag, with the program's progress since the previous call; thread-safe."""

    def __init__(self, keys: list[str] | None) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._sample: AgentSample | None = None
        self._values: dict[str, float] = {}
        self._ledger: Ledger | None = None
        self._at = 0.0
        self._progress = (0, 0.0, 0.0)
        self._rates: dict[str, float] = {}

    def values(self, ledger: Ledger, interval: float) -> dict[str, float]:
        """Return the values now; those of the GPUs are left out if the last sample is too old."""
        now, sample = time.monotonic(), ledger.latest
        with self._lock:
            if ledger is not self._ledger:
                self._ledger, self._at, self._progress, self._rates = ledger, ledger.started, (0, 0.0, 0.0), {}
            if now - self._at >= _CLOSEST:
                self._rate(ledger, now)
            if sample is None or now - sample.at > 2 * interval + _STALE:
                return dict(self._rates)
            if sample is not self._sample:
                self._sample, self._values = sample, self._tagged(ledger, sample)
            return {**self._values, **self._rates}

    def _tagged(self, ledger: Ledger, sample: AgentSample) -> dict[str, float]:
        from .tags import Tags  # with the catalog, which a program that does not ask need not load

        complete = sample.with_snapshot(ledger.held.complete(sample.snapshot))
        return Tags([*ledger.ordinals] or None, self._keys).values(complete)

    def _rate(self, ledger: Ledger, now: float) -> None:
        rhythm, seconds = ledger.rhythm, now - self._at
        before, after = self._progress, (rhythm.steps, rhythm.items, rhythm.waited)
        self._at, self._progress, self._rates = now, after, {}
        steps, items, waited = (late - early for early, late in zip(before, after, strict=True))
        if rhythm.steps:
            self._rates["train/steps_per_second"] = steps / seconds
        if rhythm.items:
            self._rates["train/items_per_second"] = items / seconds
        if rhythm.waited:
            self._rates["train/data_wait"] = min(100.0, 100.0 * waited / seconds)
