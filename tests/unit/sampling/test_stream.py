"""Streams: an iterator as always, an async iterator that never blocks its loop, and a driver that is always released."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

import pytest

import gpulse
from gpulse.errors import SourceUnavailable
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.clock import SystemClock
from gpulse.sampling.stream import Stream

T = TypeVar("T")
SHORT = 60.0


def within(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine; one that hangs fails instead of stopping the suite."""

    async def limited() -> T:
        return await asyncio.wait_for(work(), SHORT)

    return asyncio.run(limited())


class Tap:
    """Numbered snapshots, and whether they were begun and closed, and by which thread."""

    def __init__(self, count: int = 1000, pause: float = 0.0, hold: threading.Event | None = None) -> None:
        self.begun = threading.Event()
        self.closed = threading.Event()
        self.threads: set[str] = set()
        self._count, self._pause, self._hold = count, pause, hold

    def __call__(self, clock: SystemClock) -> Generator[Snapshot, None, None]:
        self.begun.set()
        self.threads.add(threading.current_thread().name)
        try:
            for at in range(self._count):
                if self._hold is not None:
                    self._hold.wait(SHORT)
                yield Snapshot(float(at))
                clock.sleep(self._pause)
        finally:
            self.closed.set()


def test_an_iterator_opens_at_the_first_snapshot_and_closes_when_told() -> None:
    tap = Tap()
    stream = Stream(tap)
    assert not tap.begun.is_set()
    assert [next(stream).time, next(stream).time] == [0.0, 1.0]
    assert tap.threads == {threading.current_thread().name}
    stream.close()
    stream.close()
    assert tap.closed.is_set()
    assert list(stream) == []


def test_a_stream_closed_before_its_first_snapshot_opens_nothing() -> None:
    tap = Tap()
    Stream(tap).close()
    assert not tap.begun.is_set()


def test_leaving_a_for_loop_or_a_with_closes_it() -> None:
    tap = Tap()
    for _ in Stream(tap):
        break
    gc.collect()
    assert tap.closed.is_set()
    tap = Tap()
    with Stream(tap) as stream:
        next(stream)
    assert tap.closed.is_set()


def test_it_ends_with_its_samples() -> None:
    assert [snapshot.time for snapshot in Stream(Tap(3))] == [0.0, 1.0, 2.0]

    async def all_of_it() -> list[float]:
        return [snapshot.time async for snapshot in Stream(Tap(3))]

    assert within(all_of_it) == [0.0, 1.0, 2.0]


def test_async_samples_in_another_thread_and_the_loop_goes_on() -> None:
    hold = threading.Event()
    tap = Tap(hold=hold)

    async def sample() -> int:
        stream, turns = Stream(tap), 0
        waiting = asyncio.ensure_future(stream.__anext__())
        while not tap.begun.is_set() or turns < 50:
            await asyncio.sleep(0)  # only a loop that is not blocked gets here
            turns += 1
        assert not waiting.done()
        hold.set()
        assert (await waiting).time == 0.0
        await stream.aclose()
        assert tap.closed.is_set()
        return turns

    assert within(sample) >= 50
    assert tap.threads == {"gpulse-stream"}


def test_cancelling_wakes_the_sampler_and_closes_it() -> None:
    tap = Tap(pause=3600.0)

    async def cancel() -> None:
        stream = Stream(tap)
        await stream.__anext__()
        waiting = asyncio.ensure_future(stream.__anext__())  # the sampler now sleeps for an hour
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert tap.closed.wait(SHORT)  # in its own thread, without being told
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()

    within(cancel)


def test_everybody_who_waits_is_answered_when_it_closes() -> None:
    tap = Tap(pause=3600.0)

    async def close() -> list[object]:
        stream = Stream(tap)
        await stream.__anext__()
        waiting = [asyncio.ensure_future(stream.__anext__()) for _ in range(3)]
        await asyncio.sleep(0.05)
        await asyncio.gather(stream.aclose(), stream.aclose())
        assert tap.closed.is_set()
        return [type(answer) for answer in await asyncio.gather(*waiting, return_exceptions=True)]

    answers = within(close)
    assert set(answers) <= {Snapshot, StopAsyncIteration}
    assert answers.count(StopAsyncIteration) >= 2


def test_leaving_an_async_for_closes_it_without_being_told() -> None:
    tap = Tap(pause=3600.0)

    async def leave() -> None:
        async for _ in Stream(tap):
            break

    within(leave)
    gc.collect()
    assert tap.closed.wait(SHORT)


def test_an_error_of_opening_is_raised_where_it_is_awaited() -> None:
    async def sample() -> None:
        async with gpulse.stream(source="replay:/nowhere") as stream:
            with pytest.raises(gpulse.RecordingError):
                await stream.__anext__()

    within(sample)
    with gpulse.testing.scripted(unavailable="none."), pytest.raises(SourceUnavailable):
        next(gpulse.stream())


def test_a_stream_is_used_in_one_way() -> None:
    async def mixed() -> None:
        first, second = Stream(Tap()), Stream(Tap())
        next(first)
        with pytest.raises(RuntimeError, match="used by `for`"):
            await first.__anext__()
        await second.__anext__()
        with pytest.raises(RuntimeError, match="used by `async for`"):
            next(second)
        first.close()
        await second.aclose()

    within(mixed)


def test_two_streams_side_by_side_on_scripted_gpus() -> None:
    async def take(count: int) -> list[float | None]:
        seen: list[float | None] = []
        async with gpulse.stream(0.01, ["utilization"]) as stream:
            async for snapshot in stream:
                seen.append(snapshot.gpus[0].utilization)
                if len(seen) == count:
                    break
        return seen

    async def both() -> list[list[float | None]]:
        return list(await asyncio.gather(take(3), take(5)))

    with gpulse.testing.scripted([{"utilization": 7}]):
        assert within(both) == [[7] * 3, [7] * 5]


def test_no_thread_is_left() -> None:
    async def take() -> None:
        async with gpulse.stream(3600, source="demo") as stream:
            await stream.__anext__()

    within(take)
    end = time.monotonic() + SHORT
    while any(thread.name == "gpulse-stream" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
