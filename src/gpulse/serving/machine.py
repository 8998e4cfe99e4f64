"""The model servers of one machine, for the sampler: of this computer, asked over HTTP, or of a machine that tells by itself."""

from __future__ import annotations

from .tracking import ServingTracker
from .watch import ServingWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.catalog import Gpu, Server
    from ..model.snapshot import Problem
    from ..sources.base import Machine


class MachineServing:
    """Used by the sampler's thread. Nothing here waits, but for `settle`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._watch = ServingWatch() if machine.real and not machine.root else None
        self._tracker = ServingTracker()
        self._pids: set[int] = set()

    def read(self, gpus: Sequence[Gpu], now: float) -> tuple[tuple[Server, ...], tuple[Problem, ...]]:
        """Return the servers of these GPUs as they last answered, and what is wrong; `now` is a monotonic time."""
        if self._watch is None:
            return self._tracker.readings(self._machine.servers(now), gpus, now), ()
        listed = {int(process.pid) for gpu in gpus for process in gpu.all_processes() if process.pid is not None}
        if listed or not any("processes" in gpu.gaps for gpu in gpus):  # else the lists were not read this time
            self._pids = listed
        samples, problems = self._watch.observe(self._pids)
        return self._tracker.readings(samples, gpus, now), problems

    def settle(self, gpus: Sequence[Gpu], now: float, seconds: float) -> tuple[tuple[Server, ...], tuple[Problem, ...]]:
        """Return the same for a single sample: wait for at most these seconds, and only if there are servers to wait for."""
        if self._watch is None:
            return self._tracker.readings(self._machine.servers(now), gpus, now), ()
        answers = self._watch.wait(seconds)
        servers = [self._tracker.readings(samples, gpus, now) for samples, _ in answers]
        return servers[-1], answers[-1][1]

    def close(self) -> None:
        """Stop asking."""
        if self._watch is not None:
            self._watch.close()
