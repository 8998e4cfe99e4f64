"""Values that are not read for every sample: the last ones, their means, and the growth of memory."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from ..model.catalog import COSTLY
from ..model.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ..analysis.out_of_memory import MemoryGrowth
    from ..model.catalog import Gpu, Process
    from ..model.metric import Value
    from .messages import AgentSample


_POINTS = 600  # ten minutes at one sample per second; 10 KB per GPU
_RISES = 4  # how many quarters of the time must each end higher than they began for steady growth
_FLOOR = 64 << 20  # bytes of growth below which nothing is said


class LastValues:
    """The last activity values and process lists by UUID; filled by one thread, read by any."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Value]] = {}
        self._processes: dict[str, tuple[Process, ...]] = {}

    def add(self, snapshot: Snapshot) -> bool:
        """Keep the values of a sample; return whether it has any activity values."""
        found = [self._keep(part) for gpu in snapshot.gpus for part in (gpu, *gpu.instances)]
        return any(found)

    def complete(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the last values for what was not read this time."""
        if all("processes" not in gpu.gaps for gpu in snapshot.gpus):
            return snapshot  # everything was read
        return snapshot.replace(gpus=tuple(map(self._completed, snapshot.gpus)))

    def _keep(self, gpu: Gpu) -> bool:
        uuid = gpu.uuid or ""
        if gpu.gaps.get("processes") != "skipped":
            self._processes[uuid] = gpu.processes
        found = {key: value for key in COSTLY if (value := gpu.get(key)) is not None}
        if found or not COSTLY.isdisjoint(gpu.gaps) or gpu.state != "ok":
            self._values[uuid] = found
        return bool(found)

    def _completed(self, gpu: Gpu) -> Gpu:
        if gpu.gaps.get("processes") != "skipped" or gpu.state != "ok":
            return gpu
        return self._filled(gpu, tuple(map(self._filled, gpu.instances)))

    def _filled(self, gpu: Gpu, instances: tuple[Gpu, ...] = ()) -> Gpu:
        uuid = gpu.uuid or ""
        values = {**self._values.get(uuid, {}), **dict(gpu.items())}
        return _with(gpu, values, {"processes"}, self._processes.get(uuid, ()), instances)


class ActivityMeans:
    """The activity values of the samples that were not passed on; used by one thread."""

    def __init__(self) -> None:
        self._read_at: dict[str, float] = {}
        self._sums: dict[str, dict[str, tuple[float, float]]] = {}  # by UUID and key: value times seconds, and seconds
        self._reads: dict[str, int] = {}
        self._lists: dict[str, tuple[Process, ...]] = {}

    def add(self, taken: AgentSample) -> None:
        """Add a sample, whether it is passed on or not."""
        for gpu in taken.snapshot.gpus:
            uuid = gpu.uuid or ""
            if gpu.gaps.get("processes") != "skipped":
                self._lists[uuid] = gpu.processes
            found = {key: value for key in COSTLY if isinstance(value := gpu.get(key), (int, float))}
            if not found:
                continue
            seconds = max(1e-6, taken.at - self._read_at.get(uuid, taken.at))
            self._read_at[uuid] = taken.at
            self._reads[uuid] = self._reads.get(uuid, 0) + 1
            sums = self._sums.setdefault(uuid, {})
            for key, value in found.items():
                total, covered = sums.get(key, (0.0, 0.0))
                sums[key] = (total + value * seconds, covered + seconds)

    def pass_on(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the means, and the process lists if this sample has none, since the last call."""
        gpus = tuple(map(self._complete, snapshot.gpus))
        self._sums, self._reads, self._lists = {}, {}, {}
        if all(new is old for new, old in zip(gpus, snapshot.gpus, strict=True)):
            return snapshot
        return snapshot.replace(gpus=gpus)

    def _complete(self, gpu: Gpu) -> Gpu:
        uuid = gpu.uuid or ""
        sums = self._sums.get(uuid, {})
        means: dict[str, Value] = {}
        if self._reads.get(uuid) != 1 or all(gpu.get(key) is None for key in sums):
            means = {key: round(total / covered, 2) for key, (total, covered) in sums.items()}
        listed = self._lists.get(uuid) if gpu.gaps.get("processes") == "skipped" else None
        if gpu.state != "ok" or not (means or listed is not None):
            return gpu
        known = {*means} if listed is None else {*means, "processes"}
        processes = gpu.processes if listed is None else listed
        return _with(gpu, {**dict(gpu.items()), **means}, known, processes, gpu.instances)


def _with(
    gpu: Gpu,
    values: dict[str, Value],
    known: Collection[str],
    processes: tuple[Process, ...],
    instances: tuple[Gpu, ...],
) -> Gpu:
    """Return a GPU with other values, without the gaps of what is known now."""
    gaps = {key: gap for key, gap in gpu.gaps.items() if key not in known}
    return type(gpu)(values, gaps, state=gpu.state, since=gpu.since, processes=processes, instances=instances)


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
        from ..analysis.out_of_memory import MemoryGrowth  # which only a program that runs out of memory needs

        points = [*self._points.get(uuid or "", ())]
        if len(points) < 2 * _RISES:
            return None
        first, last = points[0], points[-1]
        edges = [points[round(at * (len(points) - 1) / _RISES)][1] for at in range(_RISES + 1)]
        rises = sum(after > before for before, after in pairwise(edges))
        return MemoryGrowth(first[1], last[1], last[0] - first[0], rises == _RISES and last[1] - first[1] > _FLOOR)
