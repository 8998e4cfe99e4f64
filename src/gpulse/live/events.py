"""What happened since the server started, for servers without a history."""

from __future__ import annotations

from collections import deque

from ..analysis.clock import ClockWatch
from ..analysis.events import EventDetector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.event import Event
    from ..model.snapshot import Snapshot

_KEPT = 500  # events in memory


class EventLog:
    """The detector of the server's events, and the last of them. Written by the hub's thread; `between` is for any thread."""

    def __init__(self) -> None:
        self._detector = EventDetector(ClockWatch())
        self._kept: deque[Event] = deque(maxlen=_KEPT)

    def observe(self, snapshot: Snapshot) -> list[Event]:
        """Return what happened between the snapshot before and this one, and keep it."""
        found = self._detector.observe(snapshot)
        self.keep(found)
        return found

    def keep(self, events: Iterable[Event]) -> None:
        """Keep events; one that was kept before, without its end, is replaced."""
        for event in events:
            if event.until is not None:
                self._kept = deque((kept for kept in self._kept if kept.key != event.key), maxlen=_KEPT)
            self._kept.append(event)

    def between(self, start: float, end: float) -> list[Event]:
        """Return the events of a time range, oldest first."""
        return sorted((event for event in [*self._kept] if start <= event.time < end), key=lambda event: event.time)
