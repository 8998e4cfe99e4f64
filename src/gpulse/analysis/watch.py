"""Everything worth keeping of a live machine: its events, and the alerts that its rules raise."""

from __future__ import annotations

from .alerts import RuleBook, rules_from
from .clock import ClockWatch
from .events import EventDetector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..model.event import Event
    from ..model.snapshot import Snapshot


class MachineWatch:
    """Events and alerts of one machine, for a history that nobody is told of. `alerts` is the [alerts] table of the settings.

    Raises ConfigError when the table is wrong. For one thread.
    """

    def __init__(self, alerts: Mapping[str, Any]) -> None:
        self._detector = EventDetector(ClockWatch())
        self._rules = RuleBook(rules_from(alerts))

    def observe(self, snapshot: Snapshot) -> list[Event]:
        """Return what happened since the snapshot before."""
        turned = self._rules.observe(snapshot)
        return [*self._detector.observe(snapshot), *(transition.event for transition in turned)]
