"""Restarts of the agent are limited, but those of long ago do not count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from gpulse.monitor import link
from gpulse.monitor.link import Link


class _Agent:
    program_ended = False

    def end(self) -> None:
        pass


class _Dying(Link):
    """A link whose agents say one message and die."""

    def _start(self, request: Any) -> Any:
        return _Agent()

    def _hear(self) -> Iterator[Any]:
        yield "sample"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return []


def test_agents_that_die_at_once_are_given_up(said: list[str]) -> None:
    assert len([*_Dying(None, said.append)]) == 1 + link._TRIES  # type: ignore[arg-type]
    assert len(said) == 1


def test_restarts_are_forgotten_after_healthy_minutes(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1_000_000, 1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    connected = _Dying(None, said.append)  # type: ignore[arg-type]
    messages: Iterator[Any] = iter(connected)
    assert [next(messages) for _ in range(20)] == ["sample"] * 20
    assert said == []
