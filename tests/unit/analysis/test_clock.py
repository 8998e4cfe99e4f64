"""Suspends and clocks that are set."""

from __future__ import annotations

import pytest

from gpulse.analysis.events import ClockWatch, EventDetector
from gpulse.model.snapshot import Snapshot
from gpulse.present.events import event_text
from gpulse.sampling.clock import ManualClock


def test_time_that_passes_is_no_event() -> None:
    clock = ManualClock()
    watch = ClockWatch(clock)
    for _ in range(5):
        clock.sleep(60.0)
        assert watch.observe(clock.now()) == []


def test_a_suspend_is_told_with_its_length() -> None:
    clock = ManualClock()
    watch = ClockWatch(clock)
    watch.observe(clock.now())
    clock.suspend(900.0)
    assert [event_text(event) for event in watch.observe(clock.now())] == ["the machine was suspended for 15m00s"]


@pytest.mark.parametrize(
    ("leap", "words"), [(-1800.0, "back by 30m00s"), (-7.0, "back by 7s"), (5000.0, "forward by 1h23m")]
)
def test_a_clock_that_is_set_is_told_with_its_way(leap: float, words: str) -> None:
    clock = ManualClock()
    watch = ClockWatch(clock)
    watch.observe(clock.now())
    clock.sleep(1.0)
    (event,) = watch.observe(clock.now() + leap)
    assert event_text(event) == f"the system clock was set {words}"


def test_a_recording_tells_where_its_clock_was_set_back() -> None:
    detector = EventDetector()
    times = [0.0, 1.0, 2.0, -1797.0, -1796.0, -1797.0, 3000.0]
    found = [event for time in times for event in detector.observe(Snapshot(time))]
    assert [(event.time, event_text(event)) for event in found] == [
        (-1797.0, "the system clock was set back by 30m00s")
    ]


def test_a_small_correction_is_no_event() -> None:
    clock = ManualClock()
    watch = ClockWatch(clock)
    watch.observe(clock.now())
    assert watch.observe(clock.now() + 4.9) == []
