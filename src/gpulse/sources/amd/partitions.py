"""Partitions of an Instinct GPU (DPX to CPX): each with its own memory, busy share and processes, like a MIG instance."""

from __future__ import annotations

from ..base import DeviceSample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...model.metric import Value
    from ..base import Facts, Key
    from .kfd import Node
    from .metrics import MetricsTable


class Partition:
    """One partition: a KFD node. Power, heat and clocks belong to the whole GPU and are not reported here."""

    def __init__(self, node: Node, position: int, parent: Mapping[str, Value]) -> None:
        """Take the partition's number on the GPU, which has gaps where a partition is missing."""
        self.node = node
        self._position = position
        self.identity: dict[str, Value] = {
            "index": position,
            "vendor": "amd",
            "name": f"partition {position}",
            "uuid": f"{parent['uuid']}-{position}",
            "gpu_instance": position,
            "ordinal": node.position,
        }
        for key in ("pci_bus_id", "architecture"):
            if key in parent:
                self.identity[key] = parent[key]

    def read(self, keys: Key, table: MetricsTable | None, processes: dict[int, Facts]) -> DeviceSample:
        """Read what a partition has of these metrics."""
        sample = DeviceSample()
        sample.values.update(self.identity)
        sample.processes = processes
        if keys & {"memory_used", "memory_total", "memory_free"}:
            used, total = self.node.memory()
            free = None if used is None or total is None else max(0, total - used)
            for key, value in (("memory_used", used), ("memory_total", total), ("memory_free", free)):
                _put(sample, keys, key, value)
        if "utilization" in keys:
            parts = [] if table is None else table.partitions()
            busy = parts[self._position]["gfx_busy_inst"] if self._position < len(parts) else []
            _put(sample, keys, "utilization", round(sum(busy) / len(busy), 1) if busy else None)
        return sample


def _put(sample: DeviceSample, keys: Key, key: str, value: Value | None) -> None:
    if key in keys:
        if value is None:
            sample.gaps[key] = "unsupported"
        else:
            sample.values[key] = value
