"""Worker threads for blocking calls, and wake-ups from the hub's thread into Jupyter's event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from ...live.hub import Hub

    T = TypeVar("T")

_AT_ONCE = 4  # requests answered concurrently, one thread each


class Workers:
    """Runs blocking calls in threads and wakes the open streams; a hub wakes the event loop once for all of them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, "gpulse-jupyter")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waking: dict[int, set[asyncio.Event]] = {}

    def begin(self, job: Callable[[], object]) -> None:
        """Run a blocking call in a thread without waiting for it."""
        self._threads.submit(job)

    def work(self, job: Callable[[], T]) -> Awaitable[T]:
        """Run a blocking call in a thread; await the result."""
        return asyncio.wrap_future(self._threads.submit(job))

    def join(self, hub: Hub) -> asyncio.Event:
        """Return an event that is set whenever the hub has something new."""
        self._loop = asyncio.get_running_loop()
        if id(hub) not in self._waking:
            self._waking[id(hub)] = set()
            hub.listen(lambda: self._told(hub))
        event = asyncio.Event()
        self._waking[id(hub)].add(event)
        return event

    def part(self, hub: Hub, event: asyncio.Event) -> None:
        """Stop setting the event."""
        self._waking[id(hub)].discard(event)

    def _told(self, hub: Hub) -> None:
        """Wake the loop; called in the hub's thread."""
        if self._loop is not None and self._waking[id(hub)]:
            try:
                self._loop.call_soon_threadsafe(self._wake, hub)
            except RuntimeError:
                pass  # the loop has just ended

    def _wake(self, hub: Hub) -> None:
        for event in self._waking[id(hub)]:
            event.set()
