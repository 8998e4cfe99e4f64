"""Held values: what is read once per second although samples come more often."""

from __future__ import annotations

from ..model.presets import COSTLY
from ..model.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.catalog import Gpu, Process
    from ..model.metric import Value


class HeldValues:
    """The last activity values and process lists by UUID; filled by one thread, read by any."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Value]] = {}
        self._processes: dict[str, tuple[Process, ...]] = {}

    def add(self, snapshot: Snapshot) -> bool:
        """Keep the values of a sample; return whether it has any activity values."""
        found = [self._keep(part) for gpu in snapshot.gpus for part in (gpu, *gpu.instances)]
        return any(found)

    def complete(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the held values for what was not read this time."""
        if all("processes" not in gpu.gaps for gpu in snapshot.gpus):
            return snapshot  # everything was read
        gpus = tuple(self._fill(gpu) for gpu in snapshot.gpus)
        return snapshot.replace(gpus=gpus)

    def _keep(self, gpu: Gpu) -> bool:
        uuid = gpu.uuid or ""
        if gpu.gaps.get("processes") != "skipped":
            self._processes[uuid] = gpu.processes
        found = {key: value for key in COSTLY if (value := gpu.get(key)) is not None}
        if found or not COSTLY.isdisjoint(gpu.gaps) or gpu.state != "ok":
            self._values[uuid] = found
        return bool(found)

    def _fill(self, gpu: Gpu) -> Gpu:
        if gpu.gaps.get("processes") != "skipped" or gpu.state != "ok":
            return gpu
        uuid = gpu.uuid or ""
        return type(gpu)(
            {**self._values.get(uuid, {}), **dict(gpu.items())},
            {key: gap for key, gap in gpu.gaps.items() if key != "processes"},
            state=gpu.state,
            since=gpu.since,
            processes=self._processes.get(uuid, ()),
            instances=tuple(self._part(part) for part in gpu.instances),
        )

    def _part(self, part: Gpu) -> Gpu:
        uuid = part.uuid or ""
        return type(part)(
            {**self._values.get(uuid, {}), **dict(part.items())},
            part.gaps,
            processes=self._processes.get(uuid, ()),
        )
