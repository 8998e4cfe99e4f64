"""A small simulated fleet: three machines with GPUs, and one that does not answer."""

from __future__ import annotations

import threading

from ..model.select import EVERYTHING
from ..sampling.sampler import Sampler
from ..sources.simulated.source import SimulatedSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet import Fleet

_SEEDS = {"gpu01": 7, "gpu02": 11, "gpu03": 23}
_DEAD = "gpu04"


class DemoFeed:
    """The feed of `gpulse fleet --demo`."""

    past = None

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, fleet: Fleet) -> None:
        """Start to sample the machines in one thread."""
        names = {fleet.expect(name, "demo"): seed for name, seed in _SEEDS.items()}
        fleet.fail(fleet.expect(_DEAD, "demo"), "unreachable", "ssh: connect to host gpu04 port 22: No route to host")
        self._thread = threading.Thread(target=self._run, args=(fleet, names), name="gpulse-demo-fleet", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sampling."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, fleet: Fleet, names: dict[str, int]) -> None:
        samplers = {name: Sampler(SimulatedSource(seed), EVERYTHING).open() for name, seed in names.items()}
        try:
            while not self._ended.is_set():
                for name, sampler in samplers.items():
                    snapshot = sampler.read()
                    fleet.put(name, snapshot.replace(host=snapshot.host.replace(name=name)))
                self._ended.wait(self._interval)
        finally:
            for sampler in samplers.values():
                sampler.close()
