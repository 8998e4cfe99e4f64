"""The processes of the machine that use most CPU or memory, whether or not they use a GPU."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .base import Facts
    from .processes import Stat

TOP_KEYS = frozenset({"top_pids", "top_users", "top_commands", "top_cpu", "top_memory", "top_roles"})
_COUNT = 12  # processes by CPU, and as many by memory
_OTHERS = 4  # of them without a GPU, even if many workers use more
_EVERY = 1.9  # seconds between two walks over /proc, which take about 10 ms per thousand processes
_LONGEST = 400  # characters of a command


class TopProcess:
    """One of the top processes: `cpu` in percent of one core, `memory` in bytes, `role` gpu, worker or other."""

    __slots__ = ("cpu", "memory", "pid", "role")

    def __init__(self, pid: int, cpu: float, memory: int, role: str) -> None:
        self.pid = pid
        self.cpu = cpu
        self.memory = memory
        self.role = role


class TopProcesses:
    """Compares the CPU time of all processes between two walks over /proc; the first walk only counts."""

    def __init__(self, ticks: int, page: int) -> None:
        self._ticks = ticks
        self._page = page
        self._before: dict[tuple[int, int], int] = {}
        self._at = float("-inf")
        self._found: list[TopProcess] | None = None

    def is_due(self) -> bool:
        """Return whether the last walk is old enough for another one."""
        return time.monotonic() - self._at >= _EVERY

    def count(self, stats: Mapping[int, Stat], gpu_pids: Collection[int]) -> None:
        """Take a walk over all processes."""
        now = time.monotonic()
        passed = now - self._at
        ticks = {(pid, stat.started): stat.cpu for pid, stat in stats.items()}
        if self._before:
            used = {
                pid: 100.0 * (stat.cpu - self._before.get((pid, stat.started), stat.cpu)) / self._ticks / passed
                for pid, stat in stats.items()
            }
            self._found = self._chosen(stats, used, frozenset(gpu_pids))
        self._before, self._at = ticks, now

    def _chosen(
        self, stats: Mapping[int, Stat], used: Mapping[int, float], gpu_pids: frozenset[int]
    ) -> list[TopProcess]:
        by_cpu = sorted(stats, key=lambda pid: -used[pid])[:_COUNT]
        by_memory = sorted(stats, key=lambda pid: -stats[pid].resident)[:_COUNT]
        roles = {pid: _role(pid, stats, gpu_pids) for pid in stats}
        others = sorted((pid for pid in stats if roles[pid] == "other"), key=lambda pid: -used[pid])[:_OTHERS]
        both = sorted({*by_cpu, *by_memory, *others}, key=lambda pid: (-used[pid], -stats[pid].resident))
        return [TopProcess(pid, round(used[pid], 1), stats[pid].resident * self._page, roles[pid]) for pid in both]

    def add_to(self, facts: Facts, describe: Callable[[int], tuple[str, str] | None]) -> None:
        """Add the lists to the facts of the host; `describe` gives user and command of a process, None if it has ended."""
        if self._found is None:
            facts.gaps.update(dict.fromkeys(TOP_KEYS, "pending"))
            return
        known = [(process, about) for process in self._found if (about := describe(process.pid)) is not None]
        facts.values["top_pids"] = tuple(float(process.pid) for process, _ in known)
        facts.values["top_users"] = tuple(user for _, (user, _) in known)
        facts.values["top_commands"] = tuple(command[:_LONGEST] for _, (_, command) in known)
        facts.values["top_cpu"] = tuple(process.cpu for process, _ in known)
        facts.values["top_memory"] = tuple(float(process.memory) for process, _ in known)
        facts.values["top_roles"] = tuple(process.role for process, _ in known)


def _role(pid: int, stats: Mapping[int, Stat], gpu_pids: frozenset[int]) -> str:
    """Return gpu for a process that uses a GPU, worker for a descendant of one, and other for the rest."""
    if pid in gpu_pids:
        return "gpu"
    seen = {pid}
    while pid in stats and (pid := stats[pid].parent) not in seen:
        if pid in gpu_pids:
            return "worker"
        seen.add(pid)
    return "other"
