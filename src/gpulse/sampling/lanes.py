"""Lanes: threads for driver calls, so that a call that hangs never blocks the caller.

All jobs of a sample run one after another in one thread, which is kept and cheap. If a job makes no progress for `patience`
seconds, its lane is abandoned, and the remaining jobs continue, each in its own lane. The owner of an abandoned job is not
asked again until its lane returns.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, TypeAlias

    Job: TypeAlias = tuple[Hashable, Callable[[], Any]]


class Batch:
    """Jobs that run in order; `results` holds what each owner's job returned or raised, `done` counts the finished ones."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.done = 0
        self.results: dict[Hashable, Any] = {}
        self.finished: SimpleQueue[None] = SimpleQueue()
        self.over = False

    def run(self) -> None:
        """Run the jobs; `jobs` may be truncated from outside while one of them hangs."""
        while self.done < len(self.jobs):
            owner, job = self.jobs[self.done]
            try:
                self.results[owner] = job()
            except Exception as error:  # noqa: BLE001  # whatever a source raises is passed on as its result
                self.results[owner] = error
            self.done += 1
        self.over = True
        self.finished.put(None)

    def progress(self, patience: float) -> bool:
        """Wait until all jobs are done; return False as soon as one takes longer than `patience`."""
        while True:
            before = self.done
            try:
                self.finished.get(timeout=patience)
                return True
            except Empty:
                if self.done == before:
                    return False


class Lane:
    """A thread that runs batches, one after another."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        # daemon: exiting must not wait for a driver that hangs
        threading.Thread(target=self._run, name="gpulse-lane", daemon=True).start()

    def start(self, batch: Batch) -> Batch:
        """Start a batch and return it."""
        self._batches.put(batch)
        return batch

    def end(self) -> None:
        """End the thread after its current batch."""
        self._batches.put(None)

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            batch.run()


class Lanes:
    """Runs jobs with deadlines; used by one thread."""

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience
        self._lane: Lane | None = None
        self._stuck: dict[Hashable, Batch] = {}

    @property
    def hanging(self) -> bool:
        """Whether a call has not returned yet."""
        if self._stuck:
            self._stuck = {owner: batch for owner, batch in self._stuck.items() if not batch.over}
        return bool(self._stuck)

    def run(self, jobs: Sequence[Job]) -> dict[Hashable, Any]:
        """Return results by owner; a missing owner did not respond in time. A raised exception is a result."""
        free = [job for job in jobs if job[0] not in self._stuck] if self.hanging else jobs
        if self._lane is None or self._lane.pid != os.getpid():
            self._lane = Lane()
        batch = self._lane.start(Batch(free))
        if batch.progress(self.patience):
            return batch.results
        return self._leave_behind(batch)

    def close(self) -> None:
        """End the main lane's thread."""
        if self._lane is not None:
            self._lane.end()
            self._lane = None

    def _leave_behind(self, batch: Batch) -> dict[Hashable, Any]:
        """Continue without the hanging job: each remaining job gets its own lane."""
        self.close()
        at, jobs = batch.done, batch.jobs
        results = dict(batch.results)
        if at >= len(jobs):
            return results  # it has returned in the meantime
        batch.jobs = jobs[: at + 1]  # when it returns, it must not run jobs that other lanes have run
        self._stuck[jobs[at][0]] = batch
        own = []
        for job in jobs[at + 1 :]:
            lane = Lane()
            own.append(lane.start(Batch([job])))
            lane.end()
        for each in own:
            if each.progress(self.patience):
                results.update(each.results)
            else:
                self._stuck[each.jobs[0][0]] = each
        return results
