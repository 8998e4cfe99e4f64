"""Nobody waits for a call that hangs, and nobody is asked twice for the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gpulse.sampling.lanes import Batch, Lanes


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def _raise() -> None:
    raise OSError("gone")


def _counting(calls: list[str], name: str) -> Callable[[], str]:
    def job() -> str:
        calls.append(name)
        return name

    return job


def _hanging(
    release: threading.Event, calls: list[str], name: str, returned: threading.Event | None = None
) -> Callable[[], str]:
    def job() -> str:
        calls.append(name)
        release.wait()
        if returned is not None:
            returned.set()
        return name

    return job


def test_results_come_back_by_owner() -> None:
    assert Lanes().run([("a", lambda: 1), ("b", lambda: None)]) == {"a": 1, "b": None}


def test_nothing_to_do_is_nothing_done() -> None:
    assert Lanes().run([]) == {}


def test_jobs_of_a_sample_share_one_thread_that_is_not_ours() -> None:
    threads = Lanes().run([(name, threading.get_ident) for name in "abc"])
    assert len(set(threads.values())) == 1
    assert threading.get_ident() not in threads.values()


def test_what_a_job_raises_is_its_answer() -> None:
    results = Lanes().run([("a", _raise), ("b", lambda: 2)])
    assert isinstance(results["a"], OSError)
    assert results["b"] == 2


def test_one_that_hangs_is_left_out_and_those_before_and_after_answer(release: threading.Event) -> None:
    lanes = Lanes(0.05)
    results = lanes.run([("a", lambda: 1), ("b", release.wait), ("c", lambda: 3), ("d", lambda: 4)])
    assert results == {"a": 1, "c": 3, "d": 4}
    assert lanes.hanging


def test_two_that_hang_are_both_left_out(release: threading.Event) -> None:
    assert Lanes(0.05).run([("a", release.wait), ("b", release.wait), ("c", lambda: 3)]) == {"c": 3}


def test_one_that_hangs_is_not_asked_again_until_it_has_returned(release: threading.Event) -> None:
    lanes, calls = Lanes(0.05), list[str]()
    jobs = [("a", _hanging(release, calls, "a")), ("b", _counting(calls, "b"))]
    for _ in range(3):
        assert lanes.run(jobs) == {"b": "b"}
    assert calls.count("a") == 1
    release.set()
    while lanes.hanging:
        pass
    assert lanes.run(jobs) == {"a": "a", "b": "b"}


def test_a_lane_that_comes_back_does_not_do_what_others_have_done_since(release: threading.Event) -> None:
    lanes, calls = Lanes(0.05), list[str]()
    before = set(threading.enumerate())
    lanes.run([("a", _hanging(release, calls, "a")), ("b", _counting(calls, "b")), ("c", _counting(calls, "c"))])
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert calls == ["a", "b", "c"]


def test_a_lane_that_came_back_is_done_hanging(release: threading.Event) -> None:
    lanes = Lanes(0.05)
    returned = threading.Event()
    lanes.run([("a", _hanging(release, [], "a", returned))])
    assert lanes.hanging
    release.set()
    assert returned.wait(5)
    while lanes.hanging:
        pass
    assert lanes.run([("a", lambda: "again")]) == {"a": "again"}


def test_leaving_the_program_does_not_wait_for_a_lane(release: threading.Event) -> None:
    before = set(threading.enumerate())
    Lanes(0.05).run([("a", release.wait)])
    stuck = set(threading.enumerate()) - before
    assert stuck
    assert all(thread.daemon for thread in stuck)


def test_one_that_returns_just_as_patience_ends_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is over by the time it would be left behind."""
    patient = Batch.wait
    answers: list[bool] = []

    def too_late(self: Batch, until: float) -> bool:
        answers.append(patient(self, until + 5.0))
        return False

    monkeypatch.setattr(Batch, "wait", too_late)
    assert Lanes().run([("a", lambda: 1), ("b", lambda: 2)]) == {"a": 1, "b": 2}


def test_any_number_of_hanging_jobs_costs_the_patience_of_two(release: threading.Event) -> None:
    lanes = Lanes(0.3)
    begin = time.monotonic()
    results = lanes.run([*((at, release.wait) for at in range(64)), ("last", lambda: "answer")])
    assert results == {"last": "answer"}
    assert time.monotonic() - begin < 8  # one after another they would take 20 s


def test_slow_jobs_that_do_not_hang_all_answer() -> None:
    lanes = Lanes(0.4)
    results = lanes.run([(at, lambda: time.sleep(0.15)) for at in range(8)])
    assert len(results) == 8
    assert not lanes.hanging


def test_side_by_side_neighbors_share_a_thread_and_all_answer() -> None:
    lanes = Lanes()
    lanes.width = 3
    threads = lanes.run_wide([(at, threading.get_ident) for at in range(9)])
    assert set(threads) == set(range(9))
    assert len(set(threads.values())) == 3
    assert threads[0] == threads[1] == threads[2]


def test_side_by_side_jobs_really_run_at_the_same_time() -> None:
    lanes = Lanes(patience=20.0)
    lanes.width = 3
    meeting = threading.Barrier(3, timeout=20.0)
    assert lanes.run_wide([(at, meeting.wait) for at in range(3)]).keys() == {0, 1, 2}


def test_side_by_side_one_that_hangs_costs_only_itself(release: threading.Event) -> None:
    lanes = Lanes(patience=0.05)
    lanes.width = 2
    calls: list[str] = []
    jobs = [(name, _counting(calls, name)) for name in "abcdef"]
    jobs[1] = ("b", _hanging(release, calls, "b"))
    assert lanes.run_wide(jobs) == {name: name for name in "acdef"}
    assert lanes.waits_for("b")
    assert lanes.run_wide([("b", lambda: 1), ("c", lambda: 2)]) == {"c": 2}


def test_side_by_side_nothing_to_do_is_nothing_done() -> None:
    assert Lanes().run_wide([]) == {}
