"""Lanes: calls into drivers, made so that nobody waits for one that hangs.

All jobs of a sample run one after another in one thread, which is kept and cheap. When a job makes no progress for `patience`
seconds its lane is left behind with it, and the jobs after it go on, each in a lane of its own. A job's owner whose lane has
not come back is not asked again until it has.
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
    """Jobs done in order; `results` holds what each owner's job returned or raised, `done` how many are finished."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.done = 0
        self.results: dict[Hashable, Any] = {}
        self.finished: SimpleQueue[None] = SimpleQueue()
        self.over = False

    def run(self) -> None:
        """Do the jobs; `jobs` may be cut short from outside while one of them hangs."""
        while self.done < len(self.jobs):
            owner, job = self.jobs[self.done]
            try:
                self.results[owner] = job()
            except Exception as error:  # noqa: BLE001  # a source is foreign ground: what it raises is an answer, not our end
                self.results[owner] = error
            self.done += 1
        self.over = True
        self.finished.put(None)

    def progress(self, patience: float) -> bool:
        """Wait until all is done; return False as soon as one job takes longer than `patience`."""
        while True:
            before = self.done
            try:
                self.finished.get(timeout=patience)
                return True
            except Empty:
                if self.done == before:
                    return False


class Lane:
    """A thread that does batches, one after another."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        # daemon: leaving must not wait for a driver that hangs
        threading.Thread(target=self._run, name="gpulse-lane", daemon=True).start()

    def start(self, batch: Batch) -> Batch:
        """Begin a batch and return it."""
        self._batches.put(batch)
        return batch

    def end(self) -> None:
        """End the thread when it has done what it was given."""
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
        """Whether some call has not come back yet."""
        if self._stuck:
            self._stuck = {owner: batch for owner, batch in self._stuck.items() if not batch.over}
        return bool(self._stuck)

    def run(self, jobs: Sequence[Job]) -> dict[Hashable, Any]:
        """Return results by owner; an owner that is missing did not answer in time. A raised exception is a result."""
        free = [job for job in jobs if job[0] not in self._stuck] if self.hanging else jobs
        if self._lane is None or self._lane.pid != os.getpid():
            self._lane = Lane()
        batch = self._lane.start(Batch(free))
        if batch.progress(self.patience):
            return batch.results
        return self._leave_behind(batch)

    def close(self) -> None:
        """End the thread that is kept."""
        if self._lane is not None:
            self._lane.end()
            self._lane = None

    def _leave_behind(self, batch: Batch) -> dict[Hashable, Any]:
        """Go on without the job that hangs: every job after it gets a lane of its own."""
        self.close()
        at, jobs = batch.done, batch.jobs
        results = dict(batch.results)
        if at >= len(jobs):
            return results  # it came back just now
        batch.jobs = jobs[: at + 1]  # when it comes back it must not do what others have done since
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
