"""Hours of samples in seconds: what clients are sent leaves nothing behind."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")

from bench.streams import soak


def test_memory_stays_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    memory = soak(900, clients=10)
    assert max(memory) - memory[4] < 2.0  # MB, once all that is kept is there; each sample is 10 KB of text
