"""A stream of snapshots, for `for` and for `async for`."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from .clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    from typing_extensions import Self

    from ..model.snapshot import Snapshot

    Samples: TypeAlias = "Generator[Snapshot, None, None]"


class WakingClock(SystemClock):
    """The real time, with a sleep that another thread can end."""

    def __init__(self) -> None:
        self._awake = threading.Event()

    def sleep(self, seconds: float) -> None:
        self._awake.wait(max(0.0, seconds))

    def wake(self) -> None:
        """End the sleep that goes on, and every later one at once."""
        self._awake.set()


class Stream:
    """Snapshots at an interval: an iterator and an async iterator, used as one of the two.

    Nothing is opened before the first snapshot is asked for, and errors of opening are raised there. The driver is released by
    `close` or `aclose`, at the end of a `with` or `async with`, when the loop's task is cancelled, or when the stream is
    forgotten. `async for` samples in a thread: the event loop never waits for a driver.
    """

    def __init__(self, begin: Callable[[SystemClock], Samples]) -> None:
        """Take what makes the samples on a clock; it is called once, by the thread that samples."""
        self._begin = begin
        self._samples: Samples | None = None
        self._worker: _Worker | None = None
        self._closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Snapshot:
        if self._worker is not None:
            raise RuntimeError("this stream is used by `async for`; make another one")
        if self._closed:
            raise StopIteration
        if self._samples is None:
            self._samples = self._begin(SystemClock())
        return next(self._samples)

    def close(self) -> None:
        """Release the driver; safe to call twice. There are no more snapshots."""
        self._closed = True
        if self._samples is not None:
            self._samples.close()
        if self._worker is not None:
            self._worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Snapshot:
        import asyncio

        if self._samples is not None:
            raise RuntimeError("this stream is used by `for`; make another one")
        if self._closed:
            raise StopAsyncIteration
        if self._worker is None:
            self._worker = _Worker(self._begin)
        try:
            snapshot = await self._worker.ask(asyncio.get_running_loop())
        except BaseException:  # cancelled, or the source failed: either way nothing will follow
            self.close()
            raise
        if snapshot is None:
            self.close()
            raise StopAsyncIteration
        return snapshot

    async def aclose(self) -> None:
        """Release the driver, and wait until that is done without blocking the loop; safe to call twice."""
        import asyncio

        self.close()
        if self._worker is not None:
            await self._worker.ended(asyncio.get_running_loop())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if worker := getattr(self, "_worker", None):
            worker.stop()  # the thread holds no reference to us, so a stream that is left by `break` ends here


class _Worker:
    """The thread that samples for `async for`: one snapshot per request, so that a slow loop gets fresh ones."""

    def __init__(self, begin: Callable[[SystemClock], Samples]) -> None:
        self._begin = begin
        self._clock = WakingClock()
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._stopped = self._over = False
        self._farewells: list[_Request] = []
        self._lock = threading.Lock()
        # daemon: the interpreter must not wait for a driver that hangs
        threading.Thread(target=self._run, name="gpulse-stream", daemon=True).start()

    async def ask(self, loop: AbstractEventLoop) -> Snapshot | None:
        """Return the next snapshot, None at the end."""
        request = _Request(loop)
        self._requests.put(request)
        return await request.answer

    def stop(self) -> None:
        """End the thread, which closes the samples; returns at once."""
        self._stopped = True
        self._clock.wake()
        self._requests.put(None)

    async def ended(self, loop: AbstractEventLoop) -> None:
        """Wait until the samples are closed."""
        request = _Request(loop)
        with self._lock:
            if self._over:
                return
            self._farewells.append(request)
        await request.answer

    def _run(self) -> None:
        samples = self._begin(self._clock)
        try:
            while (request := self._requests.get()) is not None:
                if self._stopped:
                    request.resolve(None)
                    continue
                try:
                    request.resolve(next(samples, None))
                except Exception as error:  # noqa: BLE001  # it is raised where the snapshot is awaited
                    request.fail(error)
        finally:
            samples.close()
            self._leave()

    def _leave(self) -> None:
        """Tell everybody who waits for the end."""
        with self._lock:
            self._over = True
        for request in self._farewells:
            request.resolve(None)


class _Request:
    """One awaited snapshot; resolved by the sampling thread, in the thread of the loop."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self.answer: Future[Snapshot | None] = loop.create_future()

    def resolve(self, snapshot: Snapshot | None) -> None:
        """Hand over a snapshot."""
        self._call(lambda: None if self.answer.done() else self.answer.set_result(snapshot))

    def fail(self, error: Exception) -> None:
        """Raise an error where the snapshot is awaited."""
        self._call(lambda: None if self.answer.done() else self.answer.set_exception(error))

    def _call(self, action: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more
