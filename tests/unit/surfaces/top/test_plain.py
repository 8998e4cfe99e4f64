"""One line a sample, where there is no screen."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.sampler import Sampler
from gpulse.surfaces.top.feeds import one_line, stream_lines
from tests.unit.scripted import ScriptedSource

if TYPE_CHECKING:
    from gpulse.model.catalog import State


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


NOW = 1_700_000_000.0
BUSY = Gpu({"index": 0, "utilization": 96.6, "memory_used": 66 << 30, "temperature": 62, "power_draw": 646.4})


def test_use_memory_heat_and_power_of_each_gpu() -> None:
    assert one_line(Snapshot(NOW, (BUSY, BUSY.replace(index=1)))) == (
        "22:13:20  0: 97% 66.0 GiB 62C 646W  1: 97% 66.0 GiB 62C 646W"
    )


def test_what_is_not_known_is_a_dash() -> None:
    assert one_line(Snapshot(NOW, (Gpu({"index": 3}), Gpu({})))) == "22:13:20  3: - - - -  ?: - - - -"


@pytest.mark.parametrize("state", ["lost", "timeout", "asleep"])
def test_a_gpu_that_says_nothing_is_named_with_its_state(state: State) -> None:
    assert one_line(Snapshot(NOW, (Gpu({"index": 2, "utilization": 5}, state=state),))) == f"22:13:20  2: {state}"


def test_a_machine_without_gpus_is_only_a_time() -> None:
    assert one_line(Snapshot(NOW)) == "22:13:20"


class _Three(Sampler):
    """A sampler with three samples."""

    def __init__(self) -> None:
        super().__init__(ScriptedSource([]), Wanted())
        self._left = 3

    def read(self) -> Snapshot:
        if not self._left:
            raise StopIteration
        self._left -= 1
        return Snapshot(NOW, (BUSY,))


class _Counting(io.StringIO):
    flushed = 0

    def flush(self) -> None:
        self.flushed += 1


def test_each_sample_is_a_line_that_is_sent_at_once() -> None:
    out = _Counting()
    stream_lines(_Three(), 0.001, out)
    lines = out.getvalue().splitlines()
    assert len(lines) == out.flushed == 3
    assert all(re.match(r"22:13:20  0: 97%", line) for line in lines)
