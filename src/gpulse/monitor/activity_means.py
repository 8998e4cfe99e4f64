"""What was read between two samples of a sink: the mean activity, because each read covers only the time since the last."""

from __future__ import annotations

from ..model.presets import COSTLY
from ..model.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.catalog import Gpu, Process
    from ..model.metric import Value
    from .request import AgentSample


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
            if gpu.gaps.get("processes") != "skipped":
                self._lists[gpu.uuid or ""] = gpu.processes
            found = {key: value for key in COSTLY if isinstance(value := gpu.get(key), (int, float))}
            if not found:
                continue
            uuid = gpu.uuid or ""
            seconds = max(1e-6, taken.at - self._read_at.get(uuid, taken.at))
            self._read_at[uuid] = taken.at
            self._reads[uuid] = self._reads.get(uuid, 0) + 1
            sums = self._sums.setdefault(uuid, {})
            for key, value in found.items():
                total, covered = sums.get(key, (0.0, 0.0))
                sums[key] = (total + value * seconds, covered + seconds)

    def pass_on(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the means, and the process lists if this sample has none, since the last call."""
        gpus = tuple(self._complete(gpu) for gpu in snapshot.gpus)
        self._sums, self._reads, self._lists = {}, {}, {}
        if all(new is old for new, old in zip(gpus, snapshot.gpus, strict=True)):
            return snapshot
        return snapshot.replace(gpus=gpus)

    def _complete(self, gpu: Gpu) -> Gpu:
        uuid = gpu.uuid or ""
        sums, listed = self._sums.get(uuid, {}), self._lists.get(uuid)
        here = self._reads.get(uuid) == 1 and any(gpu.get(key) is not None for key in sums)
        means: dict[str, Value] = {}
        if not here:
            means = {key: round(total / covered, 2) for key, (total, covered) in sums.items()}
        lists = listed is not None and gpu.gaps.get("processes") == "skipped"
        if gpu.state != "ok" or not (means or lists):
            return gpu
        left_out = {*means, "processes"} if lists else {*means}
        return type(gpu)(
            {**dict(gpu.items()), **means},
            {key: gap for key, gap in gpu.gaps.items() if key not in left_out},
            state=gpu.state,
            since=gpu.since,
            processes=listed if lists and listed is not None else gpu.processes,
            instances=gpu.instances,
        )
