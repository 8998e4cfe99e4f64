"""Restarts of the agent are limited, but those of long ago do not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gpulse.monitor import link
from gpulse.monitor.link import Link
from gpulse.monitor.messages import Request


class _Agent:
    program_ended = False

    def end(self) -> None:
        pass


class _Dying(Link):
    """A link whose agents say one message and die, and are replaced at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(None, say)  # type: ignore[arg-type]
        self._stopped: Any = SimpleNamespace(wait=lambda _: False)

    def _start(self, request: Any) -> Any:
        return _Agent()

    def _hear(self) -> Iterator[Any]:
        yield "sample"


def test_agents_that_die_at_once_are_given_up() -> None:
    said: list[str] = []
    assert len([*_Dying(said.append)]) == 1 + link._TRIES
    assert len(said) == 1


def test_restarts_are_forgotten_after_healthy_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    clock = iter(range(0, 1_000_000, 1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    connected = _Dying(said.append)
    messages: Iterator[Any] = iter(connected)
    assert [next(messages) for _ in range(20)] == ["sample"] * 20
    assert said == []


class _Silent(_Agent):
    """An agent that says nothing, and counts how often and for how long it is listened to."""

    over = False

    def __init__(self) -> None:
        self.waits: list[float] = []

    def next(self, timeout: float) -> None:
        self.waits.append(timeout)
        self.over = len(self.waits) == 3

    def tell(self, command: str) -> None:
        pass


def test_a_status_is_offered_four_times_per_second_however_rare_samples_are(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, told = _Silent(), 0

    def status() -> list[str]:
        nonlocal told
        told += 1
        return []

    monkeypatch.setattr(Link, "_start", lambda *_: agent)
    assert [*Link(Request(pid=1, interval=3600.0), print, status)._hear()] == []
    assert agent.waits == [link._TURN] * 3
    assert told == 3
