"""Sink workers: each sink has its own queue and thread, so that one that fails or hangs loses only its own samples."""

from __future__ import annotations

import threading
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..sinks.base import Sample, Sink

_WAITING = 600  # samples that a slow sink may be behind: ten minutes at one per second
_FLUSH = 10.0  # seconds between flushes


class Outlet:
    """The worker of one sink. `dropped` counts samples it was too slow for, `failed` those that raised; `say` reports the first."""

    def __init__(self, sink: Sink, say: Callable[[str], None]) -> None:
        self.sink = sink
        self.dropped = 0
        self.failed = 0
        self._say = say
        self._samples: deque[Sample] = deque(maxlen=_WAITING)
        self._changed = threading.Condition()
        self._closing = False
        self._done = threading.Event()
        self._flushed = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"gpulse-{sink.name}", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def put(self, sample: Sample) -> None:
        """Add a sample without blocking."""
        with self._changed:
            if len(self._samples) == _WAITING:
                self.dropped += 1
            self._samples.append(sample)
            self._changed.notify()

    def close(self) -> None:
        """Tell the worker that there will be no more samples; returns immediately."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, seconds: float) -> bool:
        """Wait until everything is written; return False on timeout."""
        return self._done.wait(max(0.0, seconds))

    def _run(self) -> None:
        while (sample := self._next()) is not None:
            self._try(lambda sample=sample: self.sink.write(sample))  # type: ignore[misc]
            if time.monotonic() - self._flushed > _FLUSH:
                self._flushed = time.monotonic()
                self._try(self.sink.flush)
        self._try(self.sink.close)
        self._done.set()

    def _next(self) -> Sample | None:
        with self._changed:
            self._changed.wait_for(lambda: self._samples or self._closing)
            return self._samples.popleft() if self._samples else None

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  # an error of a sink must not affect the training
            self.failed += 1
            if self.failed == 1:
                self._say(
                    f"{self.sink.name}: {str(error) or type(error).__name__} (reported once; other samples are still written)."
                )
