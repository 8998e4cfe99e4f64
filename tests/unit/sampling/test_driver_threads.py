"""Nobody waits for a call that hangs, and nobody is asked twice for the same."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import pytest

from gpulse.sampling.clock import ManualClock
from gpulse.sampling.driver_threads import Batch, DriverThreads
from tests.unit.scripted import Hang

if TYPE_CHECKING:
    from gpulse.sampling.driver_threads import Job


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def hang(clock: ManualClock) -> Iterator[Hang]:
    hang = Hang(clock)
    yield hang
    hang.release()


@pytest.fixture
def driver(clock: ManualClock) -> DriverThreads:
    """Threads that are patient for one second of a clock that only a hanging call advances."""
    return DriverThreads(1.0, clock)


def _raise() -> None:
    raise OSError("gone")


def _counting(calls: list[str], name: str) -> Callable[[], str]:
    def job() -> str:
        calls.append(name)
        return name

    return job


class _Last:
    """A job with a thread of its own; `over` waits until its answer has arrived, which ends the thread."""

    def __init__(self) -> None:
        self._lane: Future[threading.Thread] = Future()

    def __call__(self) -> str:
        self._lane.set_result(threading.current_thread())
        return "last"

    def over(self) -> None:
        self._lane.result().join()


def _until_back(driver: DriverThreads, hang: Hang) -> None:
    hang.release()
    while driver.hanging:
        time.sleep(0.001)


def test_results_come_back_by_owner(driver: DriverThreads) -> None:
    assert driver.run([("a", lambda: 1), ("b", lambda: None)]) == {"a": 1, "b": None}


def test_nothing_to_do_is_nothing_done(driver: DriverThreads) -> None:
    assert driver.run([]) == {}


def test_jobs_of_a_sample_share_one_thread_that_is_not_ours(driver: DriverThreads) -> None:
    threads = driver.run([(name, threading.get_ident) for name in "abc"])
    assert len(set(threads.values())) == 1
    assert threading.get_ident() not in threads.values()


def test_what_a_job_raises_is_its_answer(driver: DriverThreads) -> None:
    results = driver.run([("a", _raise), ("b", lambda: 2)])
    assert isinstance(results["a"], OSError)
    assert results["b"] == 2


def test_one_that_hangs_is_left_out_and_those_before_and_after_answer(driver: DriverThreads, hang: Hang) -> None:
    results = driver.run([("a", lambda: 1), ("b", hang), ("c", lambda: 3), ("d", lambda: 4)])
    assert results == {"a": 1, "c": 3, "d": 4}
    assert driver.hanging


def test_two_that_hang_are_both_left_out(driver: DriverThreads, clock: ManualClock, hang: Hang) -> None:
    last = _Last()
    second = Hang(clock, after=last.over)
    assert driver.run([("a", hang), ("b", second), ("c", last)]) == {"c": "last"}
    second.release()


def test_one_that_hangs_is_not_asked_again_until_it_has_returned(driver: DriverThreads, hang: Hang) -> None:
    answering: Job = ("b", lambda: "b")
    jobs: list[Job] = [("a", hang), answering]
    for _ in range(3):
        assert driver.run(jobs) == {"b": "b"}
    assert hang.calls == 1
    _until_back(driver, hang)
    assert driver.run([("a", lambda: "again"), answering]) == {"a": "again", "b": "b"}


def test_a_lane_that_comes_back_does_not_do_what_others_have_done_since(driver: DriverThreads, hang: Hang) -> None:
    calls = list[str]()
    before = set(threading.enumerate())
    driver.run([("a", hang), ("b", _counting(calls, "b")), ("c", _counting(calls, "c"))])
    hang.release()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert sorted(calls) == ["b", "c"]


def test_leaving_the_program_does_not_wait_for_a_lane(driver: DriverThreads, hang: Hang) -> None:
    before = set(threading.enumerate())
    driver.run([("a", hang)])
    stuck = set(threading.enumerate()) - before
    assert stuck
    assert all(thread.daemon for thread in stuck)


def test_one_that_returns_just_as_patience_ends_is_an_answer(
    driver: DriverThreads, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is over by the time it would be left behind."""
    patient = Batch.wait

    def too_late(self: Batch, until: float) -> bool:
        patient(self, until)
        clock.sleep(10.0)
        return False

    monkeypatch.setattr(Batch, "wait", too_late)
    assert driver.run([("a", lambda: 1), ("b", lambda: 2)]) == {"a": 1, "b": 2}
    assert not driver.hanging


def test_any_number_of_hanging_jobs_costs_the_patience_of_two(driver: DriverThreads, clock: ManualClock) -> None:
    last, released = _Last(), threading.Event()
    hangs = Hang(clock, 1.0), Hang(clock, 1.25, after=last.over)
    rest = [(at, released.wait) for at in range(62)]
    assert driver.run([*enumerate(hangs, 100), *rest, ("last", last)]) == {"last": "last"}
    assert clock.monotonic() == 2.25  # one after another they would take 64 s
    for hang in hangs:
        hang.release()
    released.set()


def test_slow_jobs_that_do_not_hang_all_answer(driver: DriverThreads, clock: ManualClock) -> None:
    """Together they take longer than a sample may, so the last one runs beside the others."""
    spread = threading.Event()

    def slow(at: int) -> None:
        clock.sleep(0.25)
        if at == 4:
            spread.wait()
        elif at == 5:
            spread.set()

    results = driver.run([(at, partial(slow, at)) for at in range(6)])
    assert len(results) == 6
    assert not driver.hanging


def test_side_by_side_neighbors_share_a_thread_and_all_answer(driver: DriverThreads) -> None:
    driver.width = 3
    threads = driver.run_wide([(at, threading.get_ident) for at in range(9)])
    assert set(threads) == set(range(9))
    assert len(set(threads.values())) == 3
    assert threads[0] == threads[1] == threads[2]


def test_side_by_side_jobs_really_run_at_the_same_time(driver: DriverThreads) -> None:
    driver.width = 3
    meeting = threading.Barrier(3)
    assert driver.run_wide([(at, meeting.wait) for at in range(3)]).keys() == {0, 1, 2}


def test_side_by_side_one_that_hangs_costs_only_itself(driver: DriverThreads, clock: ManualClock) -> None:
    driver.width = 2
    hung, last = threading.Event(), threading.Event()

    def wait_for_last() -> None:
        hung.set()
        last.wait()

    def half_a_second_later() -> None:
        hung.wait()
        clock.sleep(0.5)

    hang = Hang(clock, 0.5, after=wait_for_last)  # its second is over now, that of "f" is not
    assert driver.run_wide(
        [("a", int), ("b", hang), ("c", int), ("d", half_a_second_later), ("e", int), ("f", last.set)]
    ).keys() == set("acdef")
    assert driver.waits_for("b")
    assert driver.run_wide([("b", lambda: 1), ("c", lambda: 2)]) == {"c": 2}
    hang.release()


def test_side_by_side_nothing_to_do_is_nothing_done(driver: DriverThreads) -> None:
    assert driver.run_wide([]) == {}


def test_what_hangs_in_the_parent_is_asked_again_in_a_child(driver: DriverThreads, hang: Hang) -> None:
    driver.run([("a", hang)])
    assert driver.hanging == {"a"}
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, repr(driver.run([("a", lambda: 1)])).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"{'a': 1}"
    os.close(reader)
    assert driver.hanging == {"a"}
