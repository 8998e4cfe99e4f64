"""Sums over many machines: how many GPUs there are, are held, are active and do useful work."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.catalog import Gpu

_CONTEXT = 256 << 20  # bytes; less is the driver's own and not a program's
_DOWN = ("lost", "timeout")


class Funnel:
    """GPUs from all to those at work. Each step is in whole GPUs: two at 50 % are one active GPU.

    `allocated` counts GPUs that a program holds; `active` is the sum of utilization, `effective` that of SM activity.
    `judged` is the number of GPUs that measure SM activity; without any, `effective` is None.
    """

    __slots__ = ("active", "allocated", "down", "effective", "judged", "memory_total", "memory_used", "power", "total")

    def __init__(self, gpus: Iterable[Gpu]) -> None:
        self.total = self.allocated = self.down = self.judged = 0
        self.active = self.memory_used = self.memory_total = 0.0
        self.effective: float | None = None
        self.power: float | None = None
        for gpu in gpus:
            self.total += 1
            self.down += gpu.state in _DOWN
            self.allocated += is_allocated(gpu)
            self.active += (gpu.utilization or 0.0) / 100
            self.memory_used += gpu.memory_used or 0.0
            self.memory_total += gpu.memory_total or 0.0
            if gpu.sm_active is not None:
                self.judged += 1
                self.effective = (self.effective or 0.0) + gpu.sm_active / 100
            if gpu.power_draw is not None:
                self.power = (self.power or 0.0) + gpu.power_draw


def is_allocated(gpu: Gpu) -> bool:
    """Return whether a program holds a GPU: it has a process, or memory in use where processes are not listed."""
    if any(True for _ in gpu.all_processes()):
        return True
    return "processes" in gpu.gaps and (gpu.memory_used or 0.0) > _CONTEXT
