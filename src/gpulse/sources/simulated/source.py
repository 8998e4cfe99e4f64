"""The source of `--demo`: eight simulated GPUs with training, an input stall, a leak and throttling."""

from __future__ import annotations

import time

from ..base import Source
from .device import DRIVER, SimulatedDevice
from .machine import SimulatedMachine
from .stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class SimulatedSource(Source):
    """A realistic machine without hardware: the same seed and clock give the same values, however often they are read.

    Time starts at `open`. `wall` is accepted for compatibility with other sources and not used.
    """

    name = "demo"

    def __init__(
        self,
        seed: int = 7,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._seed = seed
        self._clock = clock

    def open(self) -> None:
        stage = Stage(self._seed, self._clock)
        self.driver = {"version": DRIVER, "cuda": "13.0", "nvml": f"13.{DRIVER}"}
        self.machine = SimulatedMachine(stage)
        self.devices = tuple(SimulatedDevice(stage, index) for index in range(len(stage.scenes)))

    def close(self) -> None:
        self.devices = ()
