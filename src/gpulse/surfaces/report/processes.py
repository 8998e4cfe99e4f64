"""Who used the GPUs during a run, and how much."""

from __future__ import annotations

from ...model.derive import slice_share
from ...model.growth import Growth
from .instances import instance_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ...model.catalog import Gpu, Process


class ProcessSpan:
    """One process over a run: `peak` is the most bytes it held on one GPU, `share` the mean per cent its kernels ran, None when unknown.

    `hours` are GPU-hours; a GPU that several hold at once is shared evenly, so all add up to the time GPUs were held. A MIG
    instance counts by its slices.
    """

    __slots__ = ("_busy", "_ran", "_watched", "first", "gpus", "hours", "instances", "last", "peak", "process")

    def __init__(self, process: Process, time: float) -> None:
        self.process = process
        self.first = self.last = time
        self.gpus: list[str] = []
        self.instances: list[str] = []  # MIG instances, as "0:1"
        self.peak: float | None = None
        self.hours = 0.0
        self._busy = 0.0
        self._ran: dict[str, Growth] = {}
        self._watched = 0.0

    def add(self, process: Process, gpu: str, time: float, seconds: float, share: float) -> None:
        """Add what it did in a number of seconds on a GPU; `share` is its part of the GPU."""
        self.process = process
        self.last = time
        if gpu not in self.gpus:
            self.gpus.append(gpu)
        self.hours += seconds * share / 3600
        if process.memory_used is not None:
            self.peak = process.memory_used if self.peak is None else max(self.peak, process.memory_used)
        if process.sm_utilization is not None:
            self._watched += seconds
            self._busy += self._busy_seconds(process, gpu, time, seconds)

    def _busy_seconds(self, process: Process, gpu: str, time: float, seconds: float) -> float:
        """Return the seconds in which its kernels are now known to have run."""
        if process.sm_time is None:
            return (process.sm_utilization or 0.0) / 100 * seconds
        if gpu not in self._ran:
            self._ran[gpu] = Growth()
            self._watched -= seconds
        growth = self._ran[gpu].grown(process.sm_time, time)
        return 0.0 if growth is None else growth[0]

    def place(self, instance: str) -> None:
        """Note the MIG instance it runs on."""
        if instance and instance not in self.instances:
            self.instances.append(instance)

    @property
    def share(self) -> float | None:
        """Mean share of time in which its kernels ran, over its GPUs."""
        return min(100.0, 100 * self._busy / self._watched) if self._watched > 0 else None

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        process = self.process
        known = {key: process.get(key) for key in ("pid", "user", "name", "command", "job", "container", "pod", "type")}
        return known | {
            "gpus": list(self.gpus),
            "instances": list(self.instances),
            "first_seen": self.first,
            "last_seen": self.last,
            "peak_memory": self.peak,
            "sm_utilization": self.share,
            "gpu_hours": self.hours,
        }


class Uses:
    """All processes of a run."""

    def __init__(self) -> None:
        self._uses: dict[tuple[float, str], ProcessSpan] = {}

    def add(self, gpus: Iterable[tuple[str, Gpu]], time: float, seconds: float) -> None:
        """Add a sample that represents `seconds`; GPUs come with their labels."""
        for label, gpu in gpus:
            self._add_part(label, gpu, 1.0, time, seconds)
            for at, part in enumerate(gpu.instances):
                share = slice_share(dict(part.items()))
                self._add_part(label, part, share, time, seconds, instance_label(label, at, part))

    def _add_part(self, label: str, part: Gpu, share: float, time: float, seconds: float, instance: str = "") -> None:
        there = [process for process in part.processes if process.pid is not None]
        for process in there:
            key = (process.pid or 0.0, process.name or "")  # a PID is reused, rarely by the same program
            if key not in self._uses:
                self._uses[key] = ProcessSpan(process, time)
            self._uses[key].add(process, label, time, seconds, share / len(there))
            self._uses[key].place(instance)

    def raise_peaks(self, peaks: Mapping[tuple[float, str], float]) -> None:
        """Take peaks, by PID and name, that are higher than those seen."""
        for key, use in self._uses.items():
            if key in peaks:
                use.peak = max(use.peak or 0.0, peaks[key])

    def sorted(self) -> Sequence[ProcessSpan]:
        """Return them, the most GPU-hours first."""
        return sorted(self._uses.values(), key=lambda use: (-use.hours, use.process.pid or 0.0))
