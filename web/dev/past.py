"""Write a history of the demo machine that ends now, for tests of what is recorded: python3 dev/past.py FILE HOURS."""

from __future__ import annotations

import sys
import time

from gpulse.analysis.events import EventDetector
from gpulse.live.hub import wanted
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.history import HistoryWriter

STEP = 10.0  # seconds between samples


def main(path: str, hours: float) -> None:
    """Write one sample every ten seconds."""
    now = time.time()
    clock = ManualClock(now - hours * 3600)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), wanted(), clock=clock).open()
    detector = EventDetector()
    with HistoryWriter(path, clock=clock) as writer:
        while clock.now() < now - STEP / 2:
            snapshot = sampler.read()
            writer.add(snapshot, detector.observe(snapshot))
            clock.sleep(STEP)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
