"""Restarts of the agent are limited, but those of long ago do not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gpulse.monitor import link
from gpulse.monitor.link import Link


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
