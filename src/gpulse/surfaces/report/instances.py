"""MIG instances over a run: memory, activity where the driver measures it, and who used them."""

from __future__ import annotations

from ...analysis.tally import GpuTally
from ...model.catalog import GPU_METRICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...analysis.summary import GpuSummary
    from ...model.catalog import Gpu

INSTANCE_CURVES = ("sm_active", "memory_used")
_ACTIVITY = ("utilization", "sm_active", "tensor_active", "dram_active")
_SHARED = ("power_draw", "temperature", "clock_sm")  # measured for the whole GPU only


def instance_label(gpu: str, at: int, part: Gpu) -> str:
    """Return what an instance is called: the label of its GPU, a colon, and its own number, as in `gpulse status`."""
    return f"{gpu}:{at}" if part.index is None else f"{gpu}:{part.index:.0f}"


class InstanceSpan:
    """One instance: `gpu` is the label of its GPU, `label` both numbers."""

    def __init__(self, gpu: str, label: str, part: Gpu) -> None:
        self.gpu = gpu
        self.label = label
        self._tally = GpuTally(part)
        self._programs: dict[tuple[str, str], tuple[float, set[float]]] = {}

    def add(self, part: Gpu, seconds: float) -> None:
        """Add a sample that represents `seconds`."""
        self._tally.add(part, seconds)
        for process in part.processes:
            key = (process.user or "", process.name or "")
            held, pids = self._programs.get(key, (0.0, set()))
            pids.add(process.pid or 0.0)
            self._programs[key] = (max(held, process.memory_used or 0.0), pids)

    def summary(self) -> GpuSummary:
        """Return its figures."""
        return self._tally.summary(telling=False)

    def programs(self) -> list[tuple[str, str, int]]:
        """Return user, program and number of processes, those with the most memory first."""
        found = sorted(self._programs.items(), key=lambda one: (-one[1][0], one[0]))
        return [(user, name, len(pids)) for (user, name), (_, pids) in found]

    def unmeasured(self) -> list[str]:
        """Return the titles of what was never measured for this instance."""
        return [GPU_METRICS[key].title for key in (*_ACTIVITY, *_SHARED) if key not in self._tally.series]

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "gpu": self.gpu,
            "instance": self.label,
            **self.summary().to_plain(),
            "programs": [{"user": user, "name": name, "processes": count} for user, name, count in self.programs()],
        }


class InstanceSpans:
    """All instances of a run by UUID."""

    def __init__(self) -> None:
        self._spans: dict[str, InstanceSpan] = {}

    def add(self, gpus: Iterable[tuple[str, Gpu]], seconds: float) -> None:
        """Add a sample; GPUs come with their labels."""
        for gpu, whole in gpus:
            for at, part in enumerate(whole.instances):
                label = instance_label(gpu, at, part)
                name = part.uuid or label
                if name not in self._spans:
                    self._spans[name] = InstanceSpan(gpu, label, part)
                self._spans[name].add(part, seconds)

    def sorted(self) -> list[InstanceSpan]:
        """Return them by GPU and number."""
        return [*self._spans.values()]
