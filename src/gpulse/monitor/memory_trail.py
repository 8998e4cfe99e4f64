"""The recent memory use of each GPU, kept for the account of an out-of-memory error."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from ..model.out_of_memory import MemoryGrowth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.snapshot import Snapshot

_POINTS = 600  # ten minutes at one sample per second; 10 KB per GPU
_RISES = 4  # how many quarters of the time must each end higher than they began for steady growth
_FLOOR = 64 << 20  # bytes of growth below which nothing is said


class MemoryTrail:
    """Memory in use by GPU over the last samples; filled by one thread, read by any."""

    def __init__(self) -> None:
        self._points: dict[str, deque[tuple[float, float]]] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample."""
        for gpu in snapshot.gpus:
            if gpu.uuid is not None and gpu.memory_used is not None:
                trail = self._points.setdefault(gpu.uuid, deque(maxlen=_POINTS))
                trail.append((snapshot.time, gpu.memory_used))

    def growth(self, uuid: str | None) -> MemoryGrowth | None:
        """Return how the memory of a GPU changed; None if there are too few samples."""
        points = [*self._points.get(uuid or "", ())]
        if len(points) < 2 * _RISES:
            return None
        first, last = points[0], points[-1]
        edges = [points[round(at * (len(points) - 1) / _RISES)][1] for at in range(_RISES + 1)]
        rises = sum(after > before for before, after in pairwise(edges))
        return MemoryGrowth(first[1], last[1], last[0] - first[0], rises == _RISES and last[1] - first[1] > _FLOOR)
