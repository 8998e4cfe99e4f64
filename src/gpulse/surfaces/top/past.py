"""The last minutes of each process, for its own charts."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.snapshot import Snapshot

KEYS = ("memory_used", "sm_utilization", "cpu_percent", "host_memory")
_SAMPLES = 300
_MOST = 500  # maximum number of processes to follow, to limit memory


class ProcessPast:
    """The usage of processes at the last samples, oldest first; ended processes are forgotten. Memory on several GPUs is added up."""

    def __init__(self) -> None:
        self._samples: dict[int, deque[dict[str, float]]] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample."""
        now: dict[int, dict[str, float]] = {}
        for gpu in snapshot.gpus:
            for process in gpu.all_processes():
                if process.pid is None or (len(now) >= _MOST and process.pid not in now):
                    continue
                values = now.setdefault(int(process.pid), {})
                for key in KEYS:
                    value = process.get(key)
                    if isinstance(value, (int, float)):
                        summed = key in ("memory_used", "sm_utilization")
                        values[key] = values.get(key, 0.0) + value if summed else float(value)
        self._samples = {pid: self._samples.get(pid) or deque(maxlen=_SAMPLES) for pid in now}
        for pid, values in now.items():
            self._samples[pid].append(values)

    def series(self, pid: int, key: str) -> list[float | None]:
        """Return the values of a process, None for samples without one."""
        return [values.get(key) for values in self._samples.get(pid, ())]
