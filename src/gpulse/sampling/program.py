"""The program that a monitor belongs to, with all its descendants, read from the kernel."""

from __future__ import annotations

from ..model.catalog import PROCESS_METRICS, Process
from ..sources.processes import LinuxMachine
from .assemble import Rates, check, settle_rates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.snapshot import Snapshot

_YOUNG = 5.0  # seconds in which a program grows so fast that its tree is walked for every sample
_DEEPEST = 64  # generations to follow before assuming a cycle
FAST = frozenset({"cpu_percent", "cpu_time", "host_memory", "running_time", "thread_state"})
_READ_NOW = frozenset({"tree_cpu_time"})  # never repeated: a counter in a sample was read for this sample
KEYS = (
    FAST
    | _READ_NOW
    | {"tree_cpu_percent", "children", "workers_running", "workers_blocked", "tree_memory", "tree_read", "tree_write"}
)


class Program:
    """Reads one process repeatedly; used by one thread. The process tree is walked with `slow` and in the first seconds of the process."""

    def __init__(self, pid: int, machine: LinuxMachine | None = None) -> None:
        self.pid = pid
        self._machine = machine or LinuxMachine()
        self._rates = Rates()
        self._kept = Process({})

    def read(self, slow: bool) -> Process | None:
        """Return the current values; None if the process has ended or is not visible."""
        slow = slow or (self._kept.running_time or 0.0) < _YOUNG
        facts = self._machine.processes([self.pid], KEYS if slow else FAST).get(self.pid)
        if facts is None:
            return None
        settle_rates(self.pid, facts, self._rates)
        check(facts, PROCESS_METRICS, {})
        if not slow:
            kept = KEYS - FAST - _READ_NOW
            facts.values = {**{key: value for key, value in self._kept.items() if key in kept}, **facts.values}
            facts.gaps = {**{key: gap for key, gap in self._kept.gaps.items() if key in kept}, **facts.gaps}
        values = {key: value for key, value in facts.values.items() if key in KEYS}
        self._kept = Process({"pid": self.pid, **values}, facts.gaps)
        return self._kept


class ProcessFamily:
    """A process and its descendants, told apart from the other processes on the GPUs; used by one thread.

    A process that was seen to belong to it stays, even if its parent ends.
    """

    def __init__(self, root: int, machine: LinuxMachine | None = None) -> None:
        self._root = root
        self._machine = machine or LinuxMachine()
        self._known: dict[int, bool] = {}

    def members(self, snapshot: Snapshot) -> frozenset[int] | None:
        """Return the PIDs on the GPUs that belong to it; None if the driver reports those of another namespace."""
        if any(problem.source == "processes" for problem in snapshot.problems):
            return None
        pids = {int(process.pid) for gpu in snapshot.gpus for process in gpu.all_processes() if process.pid}
        if pids:  # else the lists may only have been skipped
            self._known = {pid: self._known[pid] if pid in self._known else self.owns(pid) for pid in pids}
        return frozenset(pid for pid, own in self._known.items() if own)

    def owns(self, pid: int) -> bool:
        """Return whether a process is the root or one of its descendants."""
        for _ in range(_DEEPEST):
            if pid == self._root:
                return True
            pid = self._machine.parent(pid) or 0
            if pid <= 1:
                return False
        return False
