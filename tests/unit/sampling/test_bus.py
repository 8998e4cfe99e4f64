"""One sampler, many readers: none waits for another, and one bad look ends nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.bus import Bus, Subscription
from gpulse.sampling.sampler import Sampler
from tests.unit.scripted import ScriptedSource


class _Looks(Sampler):
    """A sampler whose looks are numbered by their time; `script` may raise."""

    def __init__(self, script: Callable[[int], None] = lambda look: None) -> None:
        super().__init__(ScriptedSource([]), Wanted())
        self._script = script
        self._look = 0

    def read(self) -> Snapshot:
        self._look += 1
        self._script(self._look)
        return Snapshot(float(self._look))


class _Gate:
    """Lets a sampler look only as often as a test allows."""

    def __init__(self) -> None:
        self._allowed = threading.Semaphore(0)

    def __call__(self, look: int) -> None:
        self._allowed.acquire()

    def allow(self, looks: int) -> None:
        self._allowed.release(looks)


@pytest.fixture
def gate() -> Iterator[_Gate]:
    gate = _Gate()
    yield gate
    gate.allow(10_000)


def _next(subscription: Subscription) -> float:
    snapshot = subscription.get(5)
    assert snapshot is not None
    return snapshot.time


def test_every_reader_gets_every_snapshot(gate: _Gate) -> None:
    bus = Bus(_Looks(gate), 0.0)
    readers = [bus.subscribe(), bus.subscribe()]
    bus.start()
    gate.allow(3)
    assert [[_next(reader) for _ in range(3)] for reader in readers] == [[1.0, 2.0, 3.0]] * 2
    bus.close()


def test_a_slow_reader_loses_its_own_oldest_and_nobody_elses() -> None:
    slow, fast = Subscription(2), Subscription(8)
    for look in range(5):
        slow.put(Snapshot(float(look)))
        fast.put(Snapshot(float(look)))
    assert (slow.dropped, [_next(slow), _next(slow)], slow.get(0)) == (3, [3.0, 4.0], None)
    assert (fast.dropped, [_next(fast) for _ in range(5)]) == (0, [0.0, 1.0, 2.0, 3.0, 4.0])


def test_closing_wakes_a_reader_that_waits(gate: _Gate) -> None:
    bus = Bus(_Looks(gate), 0.0)
    reader = bus.subscribe()
    bus.start()
    waiting = threading.Thread(target=lambda: list(reader), daemon=True)
    waiting.start()
    bus.close()
    waiting.join(5)
    assert not waiting.is_alive()


def test_what_waits_when_the_bus_closes_can_still_be_read() -> None:
    reader = Subscription(4)
    reader.put(Snapshot(1.0))
    reader.close()
    assert [snapshot.time for snapshot in reader] == [1.0]


def test_a_bus_that_has_ended_ends_a_new_reader_at_once() -> None:
    bus = Bus(_Looks(), 0.0)
    bus.close()
    late = bus.subscribe()
    reading = threading.Thread(target=lambda: list(late), daemon=True)
    reading.start()
    reading.join(0.5)
    ended = not reading.is_alive()
    late.close()
    assert ended


def test_one_that_unsubscribed_gets_nothing_more(gate: _Gate) -> None:
    bus = Bus(_Looks(gate), 0.0)
    gone, stays = bus.subscribe(), bus.subscribe()
    bus.start()
    bus.unsubscribe(gone)
    gate.allow(1)
    assert _next(stays) == 1.0
    assert list(gone) == []
    bus.close()


def test_an_error_in_one_look_does_not_end_those_after_it_and_is_told_once(gate: _Gate) -> None:
    told: list[Exception] = []

    def script(look: int) -> None:
        gate(look)
        if 2 <= look <= 4:
            raise RuntimeError("bad look")

    bus = Bus(_Looks(script), 0.0, told.append)
    reader = bus.subscribe()
    bus.start()
    gate.allow(6)
    assert [_next(reader) for _ in range(3)] == [1.0, 5.0, 6.0]
    assert [str(error) for error in told] == ["bad look"]
    bus.close()


def test_a_recording_that_is_over_ends_every_reader() -> None:
    def script(look: int) -> None:
        if look == 3:
            raise StopIteration

    bus = Bus(_Looks(script), 0.0)
    reader = bus.subscribe()
    bus.start()
    assert [snapshot.time for snapshot in reader] == [1.0, 2.0]


def test_the_latest_snapshot_is_there_for_those_who_only_want_that(gate: _Gate) -> None:
    bus = Bus(_Looks(gate), 0.0)
    reader = bus.subscribe()
    bus.start()
    assert bus.latest is None
    gate.allow(2)
    assert [_next(reader), _next(reader)] == [1.0, 2.0]
    assert bus.latest is not None
    assert bus.latest.time == 2.0
    bus.close()
