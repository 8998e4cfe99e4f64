"""Who used the GPUs during a run, and how much."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ...model.catalog import Gpu, Process


class Use:
    """One process over a run: `peak` is the most bytes it held on one GPU, `share` the mean per cent its kernels ran, None when unknown.

    `hours` are GPU-hours; a GPU that several hold at once is shared evenly, so all add up to the time GPUs were held.
    """

    __slots__ = ("_busy", "_watched", "first", "gpus", "hours", "last", "peak", "process")

    def __init__(self, process: Process, time: float) -> None:
        self.process = process
        self.first = self.last = time
        self.gpus: list[str] = []
        self.peak: float | None = None
        self.hours = 0.0
        self._busy = 0.0
        self._watched = 0.0

    def add(self, process: Process, gpu: str, time: float, seconds: float, beside: int) -> None:
        """Add what it did for so many seconds on a GPU, beside so many that hold it, itself included."""
        self.process = process
        self.last = time
        if gpu not in self.gpus:
            self.gpus.append(gpu)
        self.hours += seconds / beside / 3600
        if process.memory_used is not None:
            self.peak = process.memory_used if self.peak is None else max(self.peak, process.memory_used)
        if process.sm_utilization is not None:
            self._busy += process.sm_utilization * seconds
            self._watched += seconds

    @property
    def share(self) -> float | None:
        """Mean share of time in which its kernels ran, over its GPUs."""
        return self._busy / self._watched if self._watched else None

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        process = self.process
        known = {key: process.get(key) for key in ("pid", "user", "name", "command", "job", "container", "pod", "type")}
        return known | {
            "gpus": list(self.gpus),
            "first_seen": self.first,
            "last_seen": self.last,
            "peak_memory": self.peak,
            "sm_utilization": self.share,
            "gpu_hours": self.hours,
        }


class Uses:
    """All processes of a run."""

    def __init__(self) -> None:
        self._uses: dict[tuple[float, str], Use] = {}

    def add(self, gpus: Iterable[tuple[str, Gpu]], time: float, seconds: float) -> None:
        """Add a sample that stands for so many seconds; GPUs come with their labels."""
        for label, gpu in gpus:
            there = [process for process in gpu.all_processes() if process.pid is not None]
            for process in there:
                key = (process.pid or 0.0, process.name or "")  # a number is given again, seldom to the same program
                if key not in self._uses:
                    self._uses[key] = Use(process, time)
                self._uses[key].add(process, label, time, seconds, len(there))

    def sorted(self) -> Sequence[Use]:
        """Return them, the most GPU-hours first."""
        return sorted(self._uses.values(), key=lambda use: (-use.hours, use.process.pid or 0.0))
