"""The model servers of one machine, for the sampler: of this computer, asked over HTTP, or of a machine that tells by itself."""

from __future__ import annotations

import os

from .settings import read_tariff
from .tracking import ServingTracker
from .watch import ServingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.catalog import Gpu, Server
    from ..model.snapshot import Snapshot
    from ..sources.base import Machine
    from .watch import Answer


class MachineServing:
    """Used by the sampler's thread."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._watch = ServingWatch() if machine.real and not machine.root else None
        self._tracker = ServingTracker(lambda: read_tariff(os.environ))
        self._pids: set[int] = set()

    def added_to(self, snapshot: Snapshot, now: float, most: float = 0.0) -> Snapshot:
        """Return a snapshot with the servers of its GPUs as they last answered; `now` is a monotonic time.

        For a single sample, wait `most` seconds for answers, and only if there are servers to wait for.
        """
        answers = self._watch.wait(most) if most and self._watch else [self._answer(snapshot.gpus, now)]
        servers: tuple[Server, ...] = ()
        for samples, _ in answers:
            servers = self._tracker.readings(samples, snapshot.gpus, now)
        problems = tuple(dict.fromkeys((*snapshot.problems, *answers[-1][1])))
        return snapshot.replace(serving=servers, problems=problems) if servers or problems else snapshot

    def _answer(self, gpus: Sequence[Gpu], now: float) -> Answer:
        if self._watch is None:
            return tuple(self._machine.servers(now)), ()
        listed = {int(process.pid) for gpu in gpus for process in gpu.all_processes() if process.pid is not None}
        if listed or not any("processes" in gpu.gaps for gpu in gpus):  # else the lists were not read this time
            self._pids = listed
        return self._watch.observe(self._pids)

    def close(self) -> None:
        """Stop asking."""
        if self._watch is not None:
            self._watch.close()
