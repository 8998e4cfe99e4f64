"""The source of `--demo`: eight simulated GPUs with training, an input stall, a leak and throttling."""

from __future__ import annotations

import time

from ..base import Source
from .device import DRIVER, SimulatedDevice
from .machine import SimulatedMachine
from .scenes import MIXED, MIXED_SCENES, SCENES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .scene import Scene, Worker


class SimulatedSource(Source):
    """A realistic machine without hardware: the same seed and clock give the same values, however often they are read.

    `mixed` gives GPUs of several vendors instead of eight alike.
    Time starts at `open`. `wall` is accepted for compatibility with other sources and not used.
    """

    name = "demo"

    def __init__(
        self,
        seed: int = 7,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        mixed: bool = False,
    ) -> None:
        self._mixed = mixed
        self._seed = seed
        self._clock = clock

    def open(self) -> None:
        boards, scenes = (MIXED, MIXED_SCENES) if self._mixed else ((None,) * len(SCENES), SCENES)
        stage = Stage(self._seed, self._clock, scenes)
        self.driver = {"version": DRIVER, "cuda": "13.0", "nvml": f"13.{DRIVER}"}
        self.machine = SimulatedMachine(stage)
        self.devices = tuple(SimulatedDevice(stage, index, boards[index]) for index in range(len(stage.scenes)))

    def close(self) -> None:
        self.devices = ()


class Stage:
    """The scenes by GPU, started now; all values follow from the seed and the time since then."""

    def __init__(self, seed: int, clock: Callable[[], float], scenes: Sequence[type[Scene]] = SCENES) -> None:
        self.seed = seed
        self.scenes: tuple[Scene, ...] = tuple(scene(seed, index) for index, scene in enumerate(scenes))
        self._clock = clock
        self._opened = clock()

    def elapsed(self) -> float:
        """Return the seconds since the stage was opened."""
        return self._clock() - self._opened

    def workers(self, elapsed: float) -> Iterator[tuple[Worker, float]]:
        """Yield the processes of all GPUs, each with the time of its scene."""
        for scene in self.scenes:
            at = elapsed + scene.start
            for worker in scene.workers(at):
                yield worker, at
