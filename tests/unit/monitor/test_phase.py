"""Phases as decorators, and the newest values for programs that log by hand."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from gpulse.monitor.monitor import Monitor


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """A monitor that counts and does not sample, as on a second rank."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    with Monitor() as running:
        yield running


def phases(monitor: Monitor) -> dict[str, tuple[int, int]]:
    """Return calls and steps of each phase."""
    summary = monitor.summary()
    assert summary is not None
    return {phase.name: (phase.calls or 0, phase.steps) for phase in summary.phases}


def test_a_function(monitor: Monitor) -> None:
    @monitor.phase("train")
    def train(count: int) -> int:
        """Train."""
        monitor.step()
        return train(count - 1) + 1 if count else 0

    assert train(1) == 1
    assert train.__doc__ == "Train."
    assert phases(monitor) == {"train": (1, 2), "train/train": (1, 1)}


def test_a_function_that_raises(monitor: Monitor) -> None:
    @monitor.phase("train")
    def train() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        train()
    monitor.step()
    assert phases(monitor) == {"train": (1, 0)}


def test_methods_of_every_kind(monitor: Monitor) -> None:
    class Model:
        @monitor.phase("forward")
        def forward(self) -> int:
            return 1

        @staticmethod
        @monitor.phase("load")
        def load() -> int:
            return 2

    assert (Model().forward(), Model.load()) == (1, 2)
    assert phases(monitor) == {"forward": (1, 0), "load": (1, 0)}


def test_coroutines_at_once(monitor: Monitor) -> None:
    inside = asyncio.Event()

    @monitor.phase("fetch")
    async def fetch(first: bool) -> None:
        if first:
            await inside.wait()
        else:
            inside.set()
        monitor.step()

    async def both() -> None:
        await asyncio.gather(fetch(True), fetch(False))

    asyncio.run(both())
    assert phases(monitor) == {"fetch": (2, 2)}


def test_the_consumer_of_a_generator_is_outside_its_phase(monitor: Monitor) -> None:
    @monitor.phase("load")
    def load() -> Iterator[int]:
        for at in range(3):
            monitor.step()
            yield at

    for _ in load():
        monitor.step(10)
    for _ in load():
        break
    assert phases(monitor) == {"load": (2, 4)}  # one entry for each call, also for one that is left early


def test_the_consumer_of_an_async_generator_is_outside_its_phase(monitor: Monitor) -> None:
    @monitor.phase("load")
    async def load() -> AsyncIterator[int]:
        for at in range(3):
            monitor.step()
            yield at

    async def consume() -> None:
        async for _ in load():
            monitor.step(10)

    asyncio.run(consume())
    assert phases(monitor) == {"load": (1, 3)}


def test_generators_inside_each_other_and_abandoned_ones_are_one_entry_each(monitor: Monitor) -> None:
    @monitor.phase("inner")
    def inner() -> Iterator[int]:
        for at in range(3):
            monitor.step()
            yield at

    @monitor.phase("outer")
    def outer() -> Iterator[int]:
        yield from inner()

    assert list(outer()) == [0, 1, 2]
    assert phases(monitor) == {"outer": (1, 3), "outer/inner": (1, 3)}
    abandoned = outer()
    next(abandoned)
    del abandoned
    gc.collect()
    assert phases(monitor) == {"outer": (2, 4), "outer/inner": (2, 4)}
    assert monitor.ledger is not None
    assert monitor.ledger.phase() == "", "none is open"


def test_an_async_generator_that_is_left_early_is_one_entry(monitor: Monitor) -> None:
    @monitor.phase("load")
    async def load() -> AsyncIterator[int]:
        try:
            for at in range(3):
                yield at
        finally:
            monitor.step()

    async def consume() -> None:
        batches = load()
        async for _ in batches:
            break
        await batches.aclose()  # type: ignore[attr-defined]

    asyncio.run(consume())
    assert phases(monitor) == {"load": (1, 1)}


def test_a_generator_stays_in_the_phase_in_which_it_began(monitor: Monitor) -> None:
    @monitor.phase("load")
    def load() -> Iterator[int]:
        for at in range(4):
            monitor.step()
            yield at

    with monitor.phase("train"):
        batches = load()
        next(batches)
    with monitor.phase("eval"):
        assert list(batches) == [1, 2, 3]
    assert phases(monitor) == {"train": (1, 1), "train/load": (1, 4), "eval": (1, 3)}


def test_a_generator_that_is_older_than_the_run_has_one_entry_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    monitor = Monitor()

    @monitor.phase("load")
    def load() -> Iterator[int]:
        yield from range(4)

    batches = load()
    next(batches)
    with monitor:
        assert list(batches) == [1, 2, 3]
        assert phases(monitor) == {"load": (1, 0)}


def test_without_a_name_it_is_that_of_the_function(monitor: Monitor) -> None:
    def train(at: int) -> int:
        return at + 1

    bare: Any = monitor.phase
    assert bare(train)(1) == 2
    assert [name.rpartition(".")[2] for name in phases(monitor)] == ["train"]
