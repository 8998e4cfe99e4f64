"""The ancestors of processes: who started them, up to but without init."""

from __future__ import annotations

from .base import Relative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .base import Key
    from .processes import Stat

_INIT = 1
_DEEPEST = 64  # ancestors of one process, against a loop in a list that changes while it is read
_NOTHING: Key = frozenset()


class Lineage:
    """Reads processes and their ancestors through two functions of the machine; names and commands are read once."""

    def __init__(
        self, stat: Callable[[int], Stat | None], describe: Callable[[int, Stat, Key], dict[str, str]]
    ) -> None:
        self._stat = stat
        self._describe = describe
        self._known: dict[tuple[int, int], Relative] = {}

    def of(self, pids: Collection[int]) -> dict[int, Relative]:
        """Return these processes and all their ancestors by PID; a process that has ended is left out."""
        found: dict[int, Relative] = {}
        for pid in pids:
            for _ in range(_DEEPEST):
                if pid <= _INIT or pid in found or (relative := self._read(pid)) is None:
                    break
                found[pid] = relative
                pid = relative.parent
        self._known = {key: relative for key, relative in self._known.items() if found.get(key[0]) is relative}
        return found

    def _read(self, pid: int) -> Relative | None:
        stat = self._stat(pid)
        if stat is None:
            return None
        known = self._known.get((pid, stat.started))
        if known is None or known.parent != stat.parent:  # an orphan gets a new parent
            facts = self._describe(pid, stat, _NOTHING)
            known = Relative(pid, stat.parent, facts.get("name", "?"), facts.get("command", ""), facts["user"])
            self._known[pid, stat.started] = known
        return known
