"""The queue of the simulated machine: a few entries of its users, in memory, which everybody may change."""

from __future__ import annotations

import time

from ..store.entry import Entry
from ..store.liveness import uptime
from ..store.queue import Queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HOUR = 3600.0


class DemoQueue(Queue):
    """A queue that begins with the same entries each time; what is changed is gone when the process ends."""

    def __init__(self, uuids: Sequence[str]) -> None:
        super().__init__()
        self._entries = {entry.id: entry for entry in _entries(uuids, time.time())}

    def entries(self, now: float | None = None) -> list[Entry]:
        """Return the entries."""
        return [*self._entries.values()]

    def reserve(self, entry: Entry) -> None:
        """Add a reservation, or change one."""
        self._entries[entry.id] = entry

    def cancel(self, entry: Entry) -> None:
        """Remove an entry."""
        del self._entries[entry.id]

    def owns(self, entry: Entry) -> bool:
        """Return True: in the demo every user may change everything."""
        return True


def _entries(uuids: Sequence[str], now: float) -> list[Entry]:
    came, last = uptime(), min(5, len(uuids) - 1)
    return [
        Entry("3fa1c2", "running", "ada", uid=-2, gpus=uuids[:2], count=2, since=now - 26.4 * _HOUR, shortest=28 * _HOUR,
              longest=31 * _HOUR, program="torchrun train.py"),
        Entry("90b7de", "reserved", "linus", uid=-3, gpus=uuids[last : last + 1], begins=now - _HOUR, until=now + 7 * _HOUR,
              since=now - _HOUR, reason="paper deadline"),
        Entry("c41e08", "waiting", "noor", uid=-4, count=2, among=uuids[:2], since=now - 0.7 * _HOUR, arrived=came - 2520,
              program="torchrun sft.py"),
        Entry("d2290f", "waiting", "grace", uid=-5, count=1, among=uuids[last : last + 1], since=now - 0.2 * _HOUR,
              arrived=came - 720, program="python eval.py"),
    ]  # fmt: skip
