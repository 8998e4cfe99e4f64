"""The stage: the scenes of one machine and the clock they share."""

from __future__ import annotations

from .scene import scatter
from .scenes import SCENES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .scene import Scene, Worker

_CHANNEL = 1_000_003  # separates the noise of one metric from the next
_TICK = 10.0  # noise changes ten times per second, about as often as a driver samples


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


def jitter(seed: int, channel: int, at: float) -> float:
    """Return the noise of one metric at one time, in [-1, 1)."""
    return scatter(seed + channel * _CHANNEL, int(at * _TICK))
