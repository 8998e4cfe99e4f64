"""Lanes: calls into drivers, made so that nobody waits for one that hangs.

All jobs of a look run one after another in one thread, which is cheap. When a job makes no progress for `patience` seconds
its lane is left behind with it, and the jobs after it go on, each in a lane of its own. A job's owner whose lane has not
come back is not asked again until it has.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, TypeAlias

    Job: TypeAlias = tuple[Hashable, Callable[[], Any]]


class Lane(threading.Thread):
    """A thread that does jobs in order; `results` holds what each owner's job returned or raised."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        super().__init__(name="gpulse-lane", daemon=True)  # daemon: leaving must not wait for a driver that hangs
        self.jobs = jobs
        self.done = 0
        self.results: dict[Hashable, Any] = {}
        self.finished = threading.Event()

    def run(self) -> None:
        for owner, job in self.jobs:
            try:
                self.results[owner] = job()
            except Exception as error:  # noqa: BLE001  # a source is foreign ground: what it raises is an answer, not our end
                self.results[owner] = error
            self.done += 1
        self.finished.set()

    def progress(self, patience: float) -> bool:
        """Wait until all is done; return False as soon as one job takes longer than `patience`."""
        while not self.finished.is_set():
            before = self.done
            if not self.finished.wait(patience) and self.done == before:
                return False
        return True


class Lanes:
    """Runs jobs with deadlines; used by one thread."""

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience
        self._stuck: dict[Hashable, Lane] = {}

    @property
    def hanging(self) -> bool:
        """Whether some call has not come back yet."""
        self._stuck = {owner: lane for owner, lane in self._stuck.items() if not lane.finished.is_set()}
        return bool(self._stuck)

    def run(self, jobs: Sequence[Job]) -> dict[Hashable, Any]:
        """Return results by owner; an owner that is missing did not answer in time. A raised exception is a result."""
        free = [job for job in jobs if not self.hanging or job[0] not in self._stuck]
        lane = Lane(free)
        lane.start()
        if lane.progress(self.patience):
            return lane.results
        results = dict(lane.results)
        at = lane.done
        self._stuck[free[at][0]] = lane
        lane.jobs = free[: at + 1]  # when it comes back it must not do what others have done since
        own = [Lane([job]) for job in free[at + 1 :]]
        for each in own:
            each.start()
        for each in own:
            if each.progress(self.patience):
                results.update(each.results)
            else:
                self._stuck[each.jobs[0][0]] = each
        return results
