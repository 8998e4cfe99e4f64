"""A queue with a thread: nobody waits, the oldest goes first, one failure costs one item and is told once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from gpulse.queue_worker import QueueWorker

PATIENCE = 30.0


class Worker(QueueWorker):
    """Notes what it is given; `gate` holds it up."""

    def __init__(self, size: int = 3, say: Callable[[str], None] | None = None) -> None:
        super().__init__("test", size, say)
        self.gate = threading.Event()
        self.taken = threading.Event()
        self.handled: list[int] = []
        self.finished = False

    def handle(self, item: int) -> None:
        self.taken.set()
        self.gate.wait(PATIENCE)
        if item < 0:
            raise ValueError(f"{item} is negative")
        self.handled.append(item)

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def worker(said: list[str]) -> Iterator[Worker]:
    made = Worker(say=said.append)
    yield made
    made.stopping.set()
    made.gate.set()
    made.close()
    assert made.join(PATIENCE)


def test_a_full_queue_drops_the_oldest_and_counts_it(worker: Worker) -> None:
    worker.start()
    worker.put(0)
    assert worker.taken.wait(PATIENCE)
    for item in range(1, 6):
        worker.put(item)
    worker.gate.set()
    worker.close()
    assert worker.join(PATIENCE)
    assert (worker.handled, worker.dropped, worker.finished) == ([0, 3, 4, 5], 2, True)


def test_a_failure_costs_one_item_and_is_told_once(worker: Worker, said: list[str]) -> None:
    worker.gate.set()
    worker.start()
    for item in (-1, 1, -2):
        worker.put(item)
    worker.close()
    worker.close()
    assert worker.join(PATIENCE)
    assert (worker.handled, worker.failed, said) == ([1], 2, ["-1 is negative."])


def test_joining_one_that_hangs_ends_at_its_time_and_stopping_leaves_the_rest(worker: Worker) -> None:
    worker.start()
    worker.put(1)
    worker.put(2)
    assert worker.taken.wait(PATIENCE)
    worker.close()
    assert not worker.join(0.0)
    assert not worker.join(-5.0)
    worker.stopping.set()
    worker.gate.set()
    assert worker.join(PATIENCE)
    assert (worker.handled, worker.finished) == ([1], True)


def test_one_that_was_never_started_is_done() -> None:
    assert Worker().join(PATIENCE)


def test_pauses_are_used_and_do_not_end_it() -> None:
    idle = threading.Event()

    class Pausing(Worker):
        pause = 0.01

        def idle(self) -> None:
            idle.set()

    worker = Pausing()
    worker.gate.set()
    worker.start()
    assert idle.wait(PATIENCE)
    worker.put(7)
    worker.close()
    assert worker.join(PATIENCE)
    assert worker.handled == [7]
