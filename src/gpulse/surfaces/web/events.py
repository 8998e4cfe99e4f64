"""StreamEvents of the stream: what the watch over snapshots finds, as the UUIDs and sentences that pages show."""

from __future__ import annotations

from collections import deque

from ...analysis.events import EventDetector
from ...present.cells import THROTTLE
from ...units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...analysis.events import Event
    from ...model.snapshot import Snapshot

_STATES = {"lost": "was lost", "timeout": "does not answer", "asleep": "fell asleep", "back": "answers again"}
_KEPT = 500  # events in memory, for a server without a history


class StreamEvents:
    """What happened since the server began; `kept` has the last of it. Used by the hub's thread, `kept` by any."""

    def __init__(self) -> None:
        self._watch = EventDetector()
        self._uuids: dict[str, str] = {}
        self.kept: deque[dict[str, Any]] = deque(maxlen=_KEPT)

    def observe(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return what happened between the sample before and this one; an event of several GPUs once for each."""
        for gpu in snapshot.gpus:
            if gpu.index is not None and gpu.uuid:
                self._uuids[f"{gpu.index:.0f}"] = gpu.uuid
        found = [
            {
                "time": round(event.time, 3),
                "uuid": self._uuids.get(label, label),
                "kind": event.kind,
                "text": _text(event),
            }
            for event in self._watch.observe(snapshot)
            for label in event.gpus or ("",)
        ]
        self.kept.extend(found)
        return found


def _text(event: Event) -> str:
    if event.kind in _STATES:
        return _STATES[event.kind]
    if event.kind == "throttled":
        return f"held down: {', '.join(THROTTLE.get(reason, reason) for reason in event.reasons)}"
    if event.kind == "xid":
        return f"XID {event.value:.0f}"
    if event.kind == "memory-errors":
        return f"{event.value:.0f} new uncorrected memory errors"
    if (process := event.process) is None:
        return event.kind
    who = f"{process.pid or 0:.0f} {process.name or ''} ({process.user or '?'})"
    if event.kind == "out-of-memory":
        held = "" if event.value is None else f" with {size_text(event.value)}"
        return f"{who} ended{held}, probably out of memory"
    return who
