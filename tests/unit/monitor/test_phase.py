"""Phases as decorators, and the newest values for programs that log by hand."""

from __future__ import annotations

import asyncio
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
    assert phases(monitor) == {"load": (4 + 1 + 1, 4)}  # entered for each step, and to end or close it


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
    assert phases(monitor) == {"load": (4, 3)}


def test_a_name_is_needed(monitor: Monitor) -> None:
    wrong: Any = monitor.phase
    with pytest.raises(TypeError, match="a phase needs a name"):
        wrong(print)
