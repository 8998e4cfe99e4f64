"""One sampler, many readers: none waits for another, and one bad look ends nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.sampling.bus import Bus, Subscription
from gpulse.sampling.clock import SystemClock
from gpulse.sampling.sampler import Sampler
from tests.unit.scripted import ScriptedSource

SHORT = 60.0  # seconds after which something that should happen counts as never


class _Samples(Sampler):
    """A sampler whose looks are numbered by their time; `script` may raise."""

    def __init__(self, script: Callable[[int], None] = lambda sample: None) -> None:
        super().__init__(ScriptedSource([]), Wanted())
        self._script = script
        self._sample = 0

    def read(self) -> Snapshot:
        self._sample += 1
        self._script(self._sample)
        return Snapshot(float(self._sample))


class _Gate:
    """Lets a sampler look only as often as a test allows."""

    def __init__(self) -> None:
        self._allowed = threading.Semaphore(0)

    def __call__(self, sample: int) -> None:
        self._allowed.acquire()

    def allow(self, samples: int) -> None:
        self._allowed.release(samples)


@pytest.fixture
def gate() -> Iterator[_Gate]:
    gate = _Gate()
    yield gate
    gate.allow(10_000)


def _next(subscription: Subscription) -> float:
    snapshot = subscription.get(SHORT)
    assert snapshot is not None
    return snapshot.time


def test_every_reader_gets_every_snapshot(gate: _Gate) -> None:
    bus = Bus(_Samples(gate), 0.0)
    readers = [bus.subscribe(), bus.subscribe()]
    bus.start()
    gate.allow(3)
    assert [[_next(reader) for _ in range(3)] for reader in readers] == [[1.0, 2.0, 3.0]] * 2
    bus.close()


def test_a_slow_reader_loses_its_own_oldest_and_nobody_elses() -> None:
    slow, fast = Subscription(2), Subscription(8)
    for sample in range(5):
        slow.put(Snapshot(float(sample)))
        fast.put(Snapshot(float(sample)))
    assert (slow.dropped, [_next(slow), _next(slow)], slow.get(0)) == (3, [3.0, 4.0], None)
    assert (fast.dropped, [_next(fast) for _ in range(5)]) == (0, [0.0, 1.0, 2.0, 3.0, 4.0])


def test_closing_wakes_a_reader_that_waits(gate: _Gate) -> None:
    bus = Bus(_Samples(gate), 0.0)
    reader = bus.subscribe()
    bus.start()
    waiting = threading.Thread(target=lambda: list(reader), daemon=True)
    waiting.start()
    bus.close()
    waiting.join(60)
    assert not waiting.is_alive()


def test_what_waits_when_the_bus_closes_can_still_be_read() -> None:
    reader = Subscription(4)
    reader.put(Snapshot(1.0))
    reader.close()
    assert [snapshot.time for snapshot in reader] == [1.0]


def test_a_bus_that_has_ended_ends_a_new_reader_at_once() -> None:
    bus = Bus(_Samples(), 0.0)
    bus.close()
    late = bus.subscribe()
    reading = threading.Thread(target=lambda: list(late), daemon=True)
    reading.start()
    reading.join(0.5)
    ended = not reading.is_alive()
    late.close()
    assert ended


def test_an_error_in_one_sample_does_not_end_those_after_it_and_is_told_once(gate: _Gate) -> None:
    told: list[Exception] = []

    def script(sample: int) -> None:
        gate(sample)
        if 2 <= sample <= 4:
            raise RuntimeError("bad look")

    bus = Bus(_Samples(script), 0.0, told.append)
    reader = bus.subscribe()
    bus.start()
    gate.allow(6)
    assert [_next(reader) for _ in range(3)] == [1.0, 5.0, 6.0]
    assert [str(error) for error in told] == ["bad look"]
    bus.close()


def test_a_recording_that_is_over_ends_every_reader() -> None:
    def script(sample: int) -> None:
        if sample == 3:
            raise StopIteration

    bus = Bus(_Samples(script), 0.0)
    reader = bus.subscribe()
    bus.start()
    assert [snapshot.time for snapshot in reader] == [1.0, 2.0]


def test_the_latest_snapshot_is_there_for_those_who_only_want_that(gate: _Gate) -> None:
    bus = Bus(_Samples(gate), 0.0)
    reader = bus.subscribe()
    bus.start()
    assert bus.latest is None
    gate.allow(2)
    assert [_next(reader), _next(reader)] == [1.0, 2.0]
    assert bus.latest is not None
    assert bus.latest.time == 2.0
    bus.close()


def test_a_reader_is_told_of_every_snapshot_and_of_the_end(gate: _Gate) -> None:
    told: list[int] = []
    heard = threading.Semaphore(0)

    def notify() -> None:
        told.append(1)
        heard.release()

    bus = Bus(_Samples(gate), 0.0)
    reader = bus.subscribe(2, notify)
    bus.start()
    gate.allow(2)
    assert heard.acquire(timeout=SHORT)
    assert heard.acquire(timeout=SHORT)
    assert [_next(reader), _next(reader)] == [1.0, 2.0]
    bus.close()
    assert heard.acquire(timeout=SHORT)
    assert len(told) == 3


def test_when_a_reader_is_told_the_snapshot_is_there_already() -> None:
    seen: list[Snapshot | None] = []
    reader = Subscription(2, lambda: seen.append(reader.get(0)))
    reader.put(Snapshot(1.0))
    assert [snapshot and snapshot.time for snapshot in seen] == [1.0]


def test_it_is_over_once_closed_and_not_before(gate: _Gate) -> None:
    bus = Bus(_Samples(gate), 0.0)
    assert not bus.over
    bus.start()
    assert not bus.over
    bus.close()
    assert bus.over


def test_it_is_over_when_a_recording_has_ended_and_its_readers_are_told() -> None:
    def script(sample: int) -> None:
        if sample == 2:
            raise StopIteration

    ended = threading.Event()
    bus = Bus(_Samples(script), 0.0)

    def notify() -> None:
        if bus.over:
            ended.set()

    reader = bus.subscribe(4, notify)
    bus.start()
    assert ended.wait(SHORT)
    assert [snapshot.time for snapshot in reader] == [1.0]


class _Waits(threading.Event):
    """The event a bus waits for between samples, noting how long; it never waits itself."""

    def __init__(self, waited: list[float], bus: Bus, enough: threading.Event) -> None:
        super().__init__()
        self._waited = waited
        self._bus = bus
        self._enough = enough

    def wait(self, timeout: float | None = None) -> bool:
        self._waited.append(timeout or 0.0)
        if len(self._waited) >= 4:
            self._bus.close()
            self._enough.set()
        return False


def test_an_interval_that_is_changed_holds_from_the_next_sample_on(monkeypatch: pytest.MonkeyPatch) -> None:
    bus: Bus

    def script(sample: int) -> None:
        if sample == 3:
            bus.interval = 200.0

    waited: list[float] = []
    enough = threading.Event()
    sampler = _Samples(script)
    monkeypatch.setattr(sampler, "clock", _Standing())
    bus = Bus(sampler, 10.0)
    monkeypatch.setattr(bus, "_paced", _Waits(waited, bus, enough))
    bus.start()
    assert enough.wait(SHORT)
    steps = [later - earlier for earlier, later in zip([0.0, *waited], waited, strict=False)]
    assert steps == [10.0, 10.0, 200.0, 200.0]


class _Standing(SystemClock):
    """A clock that stands still, so that each wait is longer by one interval."""

    def monotonic(self) -> float:
        return 0.0


def test_the_source_is_told_that_samples_will_follow_samples(gate: _Gate) -> None:
    """Or faults that show only to those who stay would never be seen."""
    stayed = threading.Event()
    sampler = _Samples(gate)
    sampler.source.stay = stayed.set  # type: ignore[method-assign]
    bus = Bus(sampler, 0.0)
    reader = bus.subscribe()
    bus.start()
    gate.allow(1)
    assert _next(reader) == 1.0
    bus.close()
    assert stayed.is_set()


def test_a_new_pace_does_not_wait_for_the_old_interval() -> None:
    bus = Bus(_Samples(), 1000.0)
    reader = bus.subscribe()
    bus.start()
    assert _next(reader) == 1.0
    bus.pace(0.01)
    assert _next(reader) >= 2.0
    bus.close()


def test_a_paused_bus_takes_a_sample_only_when_hastened() -> None:
    bus = Bus(_Samples(), 0.001)
    bus.pace(None)
    reader = bus.subscribe()
    bus.start()
    assert _next(reader) == 1.0
    assert reader.get(0.05) is None
    bus.hasten()
    assert _next(reader) == 2.0
    assert reader.get(0.05) is None
    bus.pace(0.01)
    assert _next(reader) >= 3.0
    bus.close()
