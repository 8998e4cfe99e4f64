"""A measured coroutine or generator is what it was: same answers, same errors, same protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any

import pytest

from gpulse.monitor import measure as measuring
from gpulse.monitor.measure import measure, measurements
from tests.unit.monitor.measured import BOTH, Log, _no_measurements, monitor, quiet, the_same  # noqa: F401

# --- coroutines


def test_coroutines_at_once_are_measured_each_for_itself() -> None:
    @measure("fetch", show=False)
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        if n == 2:
            raise ValueError(n)
        return n

    async def all_of_them() -> list[Any]:
        return list(await asyncio.gather(*(fetch(n) for n in range(4)), return_exceptions=True))

    found = asyncio.run(all_of_them())
    assert (found[0], found[1], found[3]) == (0, 1, 3)
    assert isinstance(found[2], ValueError)
    assert (measurements()["fetch"].calls, measurements()["fetch"].failed) == (4, 1)


def test_a_cancelled_coroutine_is_cancelled() -> None:
    @measure("hang", show=False)
    async def hang() -> None:
        await asyncio.Event().wait()

    async def cancel() -> bool:
        task = asyncio.ensure_future(hang())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancel())
    assert measurements()["hang"].failed == 1


# --- generators: the same steps on a measured one and on a plain one


def make_generator(log: Log) -> Callable[[], Generator[int, Any, str]]:
    def generator() -> Generator[int, Any, str]:
        try:
            got = yield 1
            log.append(("got", got))
            try:
                got = yield 2
            except KeyError as error:
                log.append(("caught", error.args))
                got = yield 20
            log.append(("got", got))
            yield 3
        finally:
            log.append("closed")
        return "result"

    return generator


def drive(generator: Generator[int, Any, str], steps: list[tuple[str, Any]]) -> Log:
    """Return what each step gives: a value, or the error it raises."""
    outcomes: Log = []
    for method, value in steps:
        try:
            call = getattr(generator, method)
            outcomes.append(call() if value is None and method != "send" else call(value))
        except BaseException as error:  # noqa: BLE001
            outcomes.append((type(error), error.args, getattr(error, "value", None)))
    return outcomes


PROTOCOLS: list[list[tuple[str, Any]]] = [
    [("__next__", None)] * 5,
    [("send", None), ("send", "a"), ("send", "b"), ("send", "c"), ("send", "d")],
    [("send", "too early"), ("__next__", None)],
    [("__next__", None), ("send", 1), ("throw", KeyError("k")), ("send", 5), ("close", None)],
    [("__next__", None), ("throw", ValueError("v")), ("__next__", None)],
    [("__next__", None), ("throw", ValueError), ("close", None)],
    [("close", None), ("__next__", None)],
    [("__next__", None), ("close", None), ("close", None), ("__next__", None)],
    [("throw", KeyError("before")), ("__next__", None)],
    [("__next__", None), ("throw", GeneratorExit()), ("__next__", None)],
    [("__next__", None), ("throw", StopIteration("odd")), ("__next__", None)],
]


@pytest.mark.parametrize("steps", PROTOCOLS)
def test_a_generator_keeps_its_protocol(steps: list[tuple[str, Any]]) -> None:
    plain_log: Log = []
    measured_log: Log = []
    plain = drive(make_generator(plain_log)(), steps)
    measured = drive(quiet(make_generator(measured_log))(), steps)
    assert measured == plain
    assert measured_log == plain_log


def test_the_result_of_a_generator_passes_through_yield_from() -> None:
    def outer() -> Iterator[Any]:
        result = yield from quiet(make_generator([]))()
        yield result

    assert list(outer()) == [1, 2, 3, "result"]


def test_a_generator_left_early_has_not_failed_and_one_that_raises_has() -> None:
    @measure("numbers", show=False)
    def numbers() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("enough")

    for number in numbers():
        if number == 1:
            break
    assert (measurements()["numbers"].calls, measurements()["numbers"].failed) == (1, 0)
    with pytest.raises(ValueError, match="enough"):
        list(numbers())
    assert (measurements()["numbers"].calls, measurements()["numbers"].failed) == (2, 1)


def test_only_the_time_inside_a_generator_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(
        measuring,
        "time",
        type("Clock", (), {"perf_counter": lambda: now[0], "process_time": lambda: 0.0, "monotonic": lambda: 0.0}),
    )

    @measure("slow", show=False)
    def slow() -> Iterator[None]:
        for _ in range(3):
            now[0] += 1.0
            yield

    for _ in slow():
        now[0] += 10.0
    assert measurements()["slow"].seconds == 3.0


# --- async generators, likewise


def make_async_generator(log: Log) -> Callable[[], AsyncGenerator[int, Any]]:
    async def generator() -> AsyncGenerator[int, Any]:
        try:
            got = yield 1
            log.append(("got", got))
            await asyncio.sleep(0)
            try:
                got = yield 2
            except (KeyError, asyncio.CancelledError) as error:
                log.append(("caught", type(error)))
                got = yield 20
            log.append(("got", got))
            yield 3
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    return generator


async def drive_async(generator: AsyncGenerator[int, Any], steps: list[tuple[str, Any]]) -> Log:
    outcomes: Log = []
    for method, value in steps:
        try:
            call = getattr(generator, method)
            outcomes.append(await (call() if value is None and method != "asend" else call(value)))
        except BaseException as error:  # noqa: BLE001
            outcomes.append((type(error), error.args))
    return outcomes


ASYNC_PROTOCOLS: list[list[tuple[str, Any]]] = [
    [("__anext__", None)] * 5,
    [("asend", None), ("asend", "a"), ("asend", "b"), ("asend", "c")],
    [("__anext__", None), ("asend", 1), ("athrow", KeyError("k")), ("asend", 5), ("aclose", None)],
    [("__anext__", None), ("asend", 1), ("athrow", asyncio.CancelledError()), ("asend", 5), ("aclose", None)],
    [("__anext__", None), ("athrow", ValueError("v")), ("__anext__", None)],
    [("aclose", None), ("__anext__", None)],
    [("__anext__", None), ("aclose", None), ("aclose", None), ("__anext__", None)],
]


@pytest.mark.parametrize("steps", ASYNC_PROTOCOLS)
def test_an_async_generator_keeps_its_protocol(steps: list[tuple[str, Any]]) -> None:
    plain_log: Log = []
    measured_log: Log = []
    plain = asyncio.run(drive_async(make_async_generator(plain_log)(), steps))
    measured = asyncio.run(drive_async(quiet(make_async_generator(measured_log))(), steps))
    assert measured == plain
    assert measured_log == plain_log


@BOTH
def test_an_async_generator_left_early_is_closed_by_the_loop(decorate: Callable[[Any], Any]) -> None:
    log: Log = []

    async def leave() -> None:
        async for number in decorate(make_async_generator(log))():
            if number == 1:
                break
        while not log:  # the loop closes what was forgotten in a task of its own
            await asyncio.sleep(0)

    asyncio.run(leave())
    assert log == ["closed"]
    assert [(total.calls, total.failed) for total in measurements()] == ([(1, 0)] if decorate is quiet else [])
