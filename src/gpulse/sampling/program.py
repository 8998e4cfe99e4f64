"""The program that a monitor belongs to, with all its descendants: read from the kernel like any process."""

from __future__ import annotations

from ..model.catalog import PROCESS_METRICS, Process
from ..sources.processes import LinuxMachine
from .assemble import check, settle_rates
from .rates import Rates

_DEEPEST = 64  # generations looked up before we take it for a circle
FAST = frozenset({"cpu_percent", "host_memory", "running_time"})
KEYS = FAST | {"tree_cpu_percent", "children", "tree_memory", "tree_read", "tree_write"}


class Program:
    """Reads one process again and again; used by one thread. The tree is walked only when `slow` is asked, and kept in between."""

    def __init__(self, pid: int, machine: LinuxMachine | None = None) -> None:
        self.pid = pid
        self._machine = machine or LinuxMachine()
        self._rates = Rates()
        self._kept = Process({})

    def owns(self, pid: int) -> bool:
        """Tell whether a process is this one or descends from it."""
        for _ in range(_DEEPEST):
            if pid == self.pid:
                return True
            pid = self._machine.parent(pid) or 0
            if pid <= 1:
                return False
        return False

    def read(self, slow: bool) -> Process | None:
        """Return what the kernel says now; None when the process is gone or not ours to see."""
        facts = self._machine.processes([self.pid], KEYS if slow else FAST).get(self.pid)
        if facts is None:
            return None
        settle_rates(self.pid, facts, self._rates)
        check(facts, PROCESS_METRICS, {})
        if not slow:
            facts.values = {**{key: value for key, value in self._kept.items() if key in KEYS - FAST}, **facts.values}
            facts.gaps = {**{key: gap for key, gap in self._kept.gaps.items() if key in KEYS - FAST}, **facts.gaps}
        values = {key: value for key, value in facts.values.items() if key in KEYS}
        self._kept = Process({"pid": self.pid, **values}, facts.gaps)
        return self._kept
