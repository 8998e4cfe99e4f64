"""The bus: one sampler, many readers. A slow reader loses only its own snapshots."""

from __future__ import annotations

import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..model.snapshot import Snapshot
    from .sampler import Sampler


class Subscription:
    """The queue of one reader: the newest snapshots, at most `size` of them. `dropped` counts those the reader was too slow for.

    `notify` is called in the bus's thread whenever there is something new to `get`.
    """

    def __init__(self, size: int, notify: Callable[[], None] | None = None) -> None:
        self._notify = notify
        self._waiting: deque[Snapshot] = deque(maxlen=size)
        self._changed = threading.Condition()
        self._closed = False
        self.dropped = 0

    def put(self, snapshot: Snapshot) -> None:
        """Add a snapshot, dropping the oldest if the reader is behind; never blocks."""
        with self._changed:
            if len(self._waiting) == self._waiting.maxlen:
                self.dropped += 1
            self._waiting.append(snapshot)
            self._changed.notify()
        if self._notify is not None:
            self._notify()

    def get(self, timeout: float | None = None) -> Snapshot | None:
        """Return the next snapshot; None if the bus is closed or the timeout expires."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout)
            return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """Wake the reader and end its iteration."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._notify is not None:
            self._notify()

    def __iter__(self) -> Iterator[Snapshot]:
        while (snapshot := self.get()) is not None:
            yield snapshot


class Bus:
    """Samples in its own thread and passes every snapshot to all subscribers.

    `failed` is called once for each kind of error that the sampler raises; sampling continues.
    """

    def __init__(self, sampler: Sampler, interval: float, failed: Callable[[Exception], None] | None = None) -> None:
        self._sampler = sampler
        self.interval = interval
        self._failed = failed
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []
        self._stop = threading.Event()
        self._paced = threading.Event()
        self._paused = False
        self._due_now = False
        self._thread = threading.Thread(target=self._run, name="gpulse-bus", daemon=True)
        self.latest: Snapshot | None = None
        self.took: float | None = None  # duration of the latest sample in seconds

    @property
    def over(self) -> bool:
        """Whether there will be no more snapshots: the bus is closed or the recording has ended."""
        return self._stop.is_set()

    def start(self) -> None:
        """Start sampling. `interval` may be changed at any time and takes effect with the next sample; see also `pace`."""
        self._thread.start()

    def subscribe(self, size: int = 8, notify: Callable[[], None] | None = None) -> Subscription:
        """Return a queue for a new reader."""
        subscription = Subscription(size, notify)
        with self._lock:
            self._subscriptions.append(subscription)
            if self._stop.is_set():
                subscription.close()
        return subscription

    def pace(self, interval: float | None) -> None:
        """Change the interval immediately; None pauses."""
        self._paused = interval is None
        if interval is not None:
            self.interval = interval
        self._paced.set()

    def hasten(self) -> None:
        """Take the next sample now, even if paused."""
        self._due_now = True
        self._paced.set()

    def close(self) -> None:
        """Stop sampling and end every reader; returns immediately even if the driver hangs. The sampler stays open."""
        self._stop.set()
        self._paced.set()
        with self._lock:
            for subscription in self._subscriptions:
                subscription.close()

    def _run(self) -> None:
        clock = self._sampler.clock
        due = clock.monotonic()
        self._sampler.stay()
        while not self._stop.is_set():
            try:
                began = clock.monotonic()
                snapshot = self._sampler.read()
                self.took = clock.monotonic() - began
                self._publish(snapshot)
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001  # one failed sample must not stop the following ones
                self._tell(error)
            due = self._wait(due)
        self.close()

    def _wait(self, before: float) -> float:
        """Wait until the next sample is due, by an interval that may change meanwhile; return its time."""
        clock = self._sampler.clock
        while True:
            self._paced.clear()
            due = max(before + self.interval, clock.monotonic())
            left = due - clock.monotonic()
            if self._due_now:
                self._due_now = False
                return clock.monotonic()
            if self._stop.is_set() or (left <= 0 and not self._paused):
                return due
            if not clock.wait(self._paced.wait, None if self._paused else left):
                return due

    def _publish(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        with self._lock:
            for subscription in self._subscriptions:
                subscription.put(snapshot)

    def _tell(self, error: Exception) -> None:
        if repr(error) not in self._told and self._failed is not None:
            self._failed(error)
        self._told.add(repr(error))
