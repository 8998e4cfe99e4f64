"""Times of day at which tests run, whenever they are run."""

from __future__ import annotations

import time

import pytest

MOMENTS = {
    "noon": 1_794_830_400.0,
    "midnight of a new year": 1_798_761_600.5,
}  # 2026-11-16 12:00 and 2027-01-01 00:00:00.5 UTC


def begin_at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    """Set the time of day in this process; it goes on from there."""
    start = time.monotonic()
    monkeypatch.setattr(time, "time", lambda: moment + time.monotonic() - start)
