"""One moment of the past: the machine as it was recorded, what limited its GPUs, and the alerts that were active."""

from __future__ import annotations

from ..analysis.alerts import Transition
from ..analysis.diagnosis.judge import diagnose
from ..analysis.diagnosis.live import WINDOW
from ..model.cadence import Cadence
from ..present.events import event_style, event_text
from ..present.verdicts import QUIET, verdict_row
from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..store.history import HistoryReader

_COARSEST = 600.0  # seconds that one row of the history may stand for
_LOOK_BACK = 86_400.0  # seconds in which an alert that was active at the moment must have fired
_MOMENTARY = ("process-end", "out-of-memory", "gpu-free")  # kinds of alerts that are never cleared


class Moment:
    """What was known at a time. `snapshot` is the last one at or before it, None if nothing was recorded then."""

    __slots__ = ("alerts", "problems", "snapshot", "verdicts")

    def __init__(self, reader: HistoryReader, at: float) -> None:
        samples = list(reader.snapshots(at - WINDOW, at + 0.001))
        self.snapshot = None if _is_gap(samples, at) else samples[-1]
        self.verdicts: list[dict[str, Any]] = []
        self.alerts: list[dict[str, Any]] = []
        self.problems: list[dict[str, Any]] = []
        if self.snapshot is not None:
            diagnosis = diagnose(samples)
            active = _active(reader.events(at - _LOOK_BACK, at + 0.001, {"alert"}), at)
            self.verdicts = [verdict_row(verdict) for verdict in diagnosis if verdict.key not in QUIET]
            self.alerts = [_row(event) for event in active]
            self.problems = wire.problems(diagnosis, map(Transition, active), at)


def _is_gap(samples: Sequence[Snapshot], at: float) -> bool:
    """Return whether samples were missing at a time, by the recorder's own interval."""
    if not samples:
        return True
    cadence = Cadence(_COARSEST)
    for sample in samples:
        cadence.next(sample.time)
    return cadence.next(at)[1]


def _active(events: Iterable[Event], at: float) -> list[Event]:
    found: dict[tuple[Any, ...], Event] = {}
    for event in events:
        key = (event.rule, event.uuids)
        if event.alert == "clear":
            found.pop(key, None)
        elif event.kind not in _MOMENTARY and (event.until is None or event.until > at):
            found[key] = event
    return [*found.values()]


def _row(event: Event) -> dict[str, Any]:
    return {
        "time": round(event.time, 3),
        "rule": event.rule,
        "state": "fire",
        "severity": event.severity,
        "level": event_style(event),
        "uuid": event.uuids[0] if event.uuids else "",
        "text": event_text(event),
    }
