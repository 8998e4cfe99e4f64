"""What the tests of `measure` share: a monitor in this process, and a function with and without its decorator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpulse.monitor.measure import measure, measurements
from gpulse.monitor.monitor import Monitor

Log = list[Any]


@pytest.fixture(scope="module", autouse=True)
def monitor() -> Iterator[Monitor]:
    """Sample in a thread of this process, so that no agent is started for these."""
    with Monitor(source="demo", mode="thread") as running:
        yield running


@pytest.fixture(autouse=True)
def _no_measurements() -> Iterator[None]:
    measurements().clear()
    yield
    measurements().clear()


def quiet(function: Any) -> Any:
    return measure(show=False)(function)


def the_same(function: Any) -> Any:
    return function


BOTH = pytest.mark.parametrize("decorate", [the_same, quiet], ids=["plain", "measured"])
