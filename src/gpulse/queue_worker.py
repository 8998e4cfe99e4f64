"""A bounded queue with a thread of its own: putting something in never waits for what is done with it."""

from __future__ import annotations

import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class QueueWorker:
    """Handles items one by one in a thread. When the queue is full the oldest item is dropped.

    Subclasses override `handle`, and where needed `idle` and `finish`, which run in the thread. An exception costs one
    item, and `say` is told of the first, in the words of `complaint`. `dropped` and `failed` count items. Once `stopping` is
    set, what still waits is left.
    """

    pause: float | None = None  # seconds without an item after which `idle` is called

    def __init__(self, name: str, size: int, say: Callable[[str], None] | None = None) -> None:
        self.say = say
        self.dropped = 0
        self.failed = 0
        self.stopping = threading.Event()
        self._waiting: deque[Any] = deque(maxlen=size)
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"gpulse-{name}", daemon=True)

    def handle(self, item: Any) -> None:
        """Do what is to be done with one item."""
        raise NotImplementedError

    def displace(self, oldest: Any, newest: Any) -> Any:
        """Return what takes the place of an item that is dropped, and of the one it is dropped for."""
        return newest

    def idle(self) -> None:
        """Do what is to be done while nothing comes."""

    def finish(self) -> None:
        """Clean up after the last item."""

    def complaint(self, error: Exception) -> str:
        """Return what is said of the first failure; later ones are only counted."""
        return f"{str(error) or type(error).__name__}."

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, item: Any) -> None:
        """Hand over an item and return at once; any thread may call it."""
        with self._changed:
            if len(self._waiting) == self._waiting.maxlen:
                self.dropped += 1
                item = self.displace(self._waiting.popleft(), item)
            self._waiting.append(item)
            self._changed.notify()

    def close(self) -> None:
        """Announce that no more items will come, and return at once. Safe to call twice."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self, seconds: float) -> bool:
        """Wait until everything is handled; return False when that takes longer than `seconds`."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (items := self._next()) is not None:
            self._try(self.handle, *items) if items else self._try(self.idle)
        self._try(self.finish)

    def _next(self) -> tuple[Any, ...] | None:
        """Return the next item, nothing after a pause, None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing, self.pause)
            if self._waiting and not self.stopping.is_set():
                return (self._waiting.popleft(),)
            return None if self._closing or self.stopping.is_set() else ()

    def _try(self, action: Callable[..., None], *arguments: Any) -> None:
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001  # it may be anybody's code, and the next item must be tried
            self.failed += 1
            if self.failed == 1 and self.say is not None:
                self.say(self.complaint(error))
