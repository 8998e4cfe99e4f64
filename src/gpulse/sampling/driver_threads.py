"""Threads for driver calls, so that a call that hangs never blocks the caller.

All jobs of a sample run one after another in one thread, which is kept and cheap; a single sample of many GPUs may be split
over several threads (`width`), which takes less time but not less CPU. If a job takes longer than `patience` seconds, or all
together take longer than a little more, the remaining ones continue in parallel, each in its own thread, with one deadline for
all: however many jobs hang, a run takes at most 2.5 times `patience`. A job that is not done by then is abandoned, and its
owner is not asked again until its thread returns.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue

from .clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, TypeAlias

    Job: TypeAlias = tuple[Hashable, Callable[[], Any]]


# patiences that all jobs together have, first in one thread and then side by side, while they make progress
_LONGEST = 1.25


class Batch:
    """Jobs that run in order; `results` holds what each owner's job returned or raised, `since` is when the last one started."""

    def __init__(self, jobs: Sequence[Job], clock: SystemClock) -> None:
        self.jobs = jobs
        self.started = 0
        self._clock = clock
        self.since = clock.monotonic()
        self._lock = threading.Lock()
        self.results: dict[Hashable, Any] = {}
        self._finished: SimpleQueue[None] = SimpleQueue()
        self.over = False

    def run(self) -> None:
        """Run the jobs that `cut` has not taken away."""
        while (job := self._next()) is not None:
            owner, call = job
            try:
                self.results[owner] = call()
            except Exception as error:  # noqa: BLE001  # whatever a source raises is passed on as its result
                self.results[owner] = error
        self.over = True
        self._finished.put(None)

    def wait(self, until: float) -> bool:
        """Wait until all jobs are done or the clock reaches `until`; return whether they are done."""
        return self._clock.wait(self._done, max(0.0, until - self._clock.monotonic()))

    def cut(self) -> Sequence[Job]:
        """Take away and return the jobs that have not started."""
        with self._lock:
            rest = self.jobs[self.started :]
            self.jobs = self.jobs[: self.started]
            return rest

    def _next(self) -> Job | None:
        with self._lock:
            if self.started >= len(self.jobs):
                return None
            self.started += 1
            self.since = self._clock.monotonic()
            return self.jobs[self.started - 1]

    def _done(self, seconds: float | None) -> bool:
        try:
            self._finished.get(timeout=seconds)
        except Empty:
            return False
        return True


class DriverThread:
    """A thread that runs batches, one after another."""

    def __init__(self) -> None:
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        # daemon: exiting must not wait for a driver that hangs
        threading.Thread(target=self._run, name="gpulse-driver", daemon=True).start()

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


class DriverThreads:
    """Runs jobs with deadlines; used by one thread. `width` is how many jobs may run at the same time."""

    def __init__(self, patience: float = 1.0, clock: SystemClock | None = None) -> None:
        self.patience = patience
        self._clock = clock or SystemClock()
        self.width = 1
        self._pid = os.getpid()
        self._threads: list[DriverThread] = []
        self._stuck: dict[Hashable, Batch] = {}

    @property
    def hanging(self) -> frozenset[Hashable]:
        """The owners of abandoned jobs that have not returned."""
        if self._pid != os.getpid():  # after a fork there are no threads, so nothing that hangs would ever return
            self._pid, self._threads, self._stuck = os.getpid(), [], {}
        if self._stuck:
            self._stuck = {owner: batch for owner, batch in self._stuck.items() if not batch.over}
        return frozenset(self._stuck)

    def waits_for(self, owner: Hashable) -> bool:
        """Return whether this owner has an abandoned job that has not returned."""
        return owner in self.hanging

    def blame(self, owner: Hashable, other: Hashable) -> None:
        """Count an abandoned job of `owner`, if there is one, as a job of `other`."""
        if self.waits_for(owner):
            self._stuck[other] = self._stuck.pop(owner)

    def run(self, jobs: Sequence[Job]) -> dict[Hashable, Any]:
        """Return results by owner; a missing owner did not respond in time. A raised exception is a result."""
        return self._run([self._free(jobs)])

    def run_wide(self, jobs: Sequence[Job]) -> dict[Hashable, Any]:
        """Run jobs that do not depend on each other, as many at the same time as `width` says; neighbors share a thread."""
        free = self._free(jobs)
        each = max(1, -(-len(free) // max(1, self.width)))
        return self._run([free[at : at + each] for at in range(0, len(free), each)])

    def close(self) -> None:
        """End the threads that are kept."""
        for thread in self._threads:
            thread.end()
        self._threads = []

    def _free(self, jobs: Sequence[Job]) -> Sequence[Job]:
        return [job for job in jobs if job[0] not in self._stuck] if self.hanging else jobs

    def _run(self, parts: Sequence[Sequence[Job]]) -> dict[Hashable, Any]:
        while len(self._threads) < len(parts):
            self._threads.append(DriverThread())
        batches = [thread.start(Batch(part, self._clock)) for thread, part in zip(self._threads, parts, strict=False)]
        end = self._clock.monotonic() + _LONGEST * self.patience
        late = [batch for batch in batches if not self._done(batch, end)]
        if late:
            self._spread(late)
        return {owner: answer for batch in batches for owner, answer in batch.results.copy().items()}

    def _done(self, batch: Batch, end: float) -> bool:
        """Wait while a batch makes progress and there is time; return whether it is done."""
        while not batch.wait(min(end, batch.since + self.patience)):
            now = self._clock.monotonic()
            if now >= end or now >= batch.since + self.patience:
                return False
        return True

    def _spread(self, late: Sequence[Batch]) -> None:
        """Run the jobs that have not started in parallel, and abandon what is not done in time."""
        self.close()
        batches = list(late)
        origin = {id(batch): batch for batch in late}
        for batch in late:
            for job in batch.cut():
                thread = DriverThread()
                single = thread.start(Batch([job], self._clock))
                thread.end()
                origin[id(single)] = batch
                batches.append(single)
        until = self._clock.monotonic() + _LONGEST * self.patience
        for each in batches:
            if not each.wait(min(until, each.since + self.patience)) and each.jobs:
                self._stuck[each.jobs[-1][0]] = each
            if origin[id(each)] is not each:
                origin[id(each)].results.update(each.results.copy())
