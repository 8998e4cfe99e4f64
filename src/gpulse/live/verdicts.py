"""Verdicts: what limits each GPU now, as the page shows it."""

from __future__ import annotations

from ..analysis.diagnosis.live import LiveDiagnosis
from ..present.verdicts import QUIET, verdict_event, verdict_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.verdict import Diagnosis


def _code(snapshot: Snapshot, uuid: str) -> list[str]:
    """Return the lines of code that keep a GPU waiting, as Monitors in its processes tell them to their own user."""
    from ..model.stacks import CodeLine
    from ..monitor.presence import presences
    from ..present.code import advised

    pids = {int(process.pid or 0) for gpu in snapshot.gpus if gpu.uuid == uuid for process in gpu.all_processes()}
    told = [one for pid, one in presences().items() if pid in pids]
    return [text for one in told for text in advised([CodeLine(**line) for line in one.code])]


class Verdicts:
    """Judges the last minute every ten seconds. Fed by the hub's thread; `found` and `latest` may be read by any.

    `found` has one entry for each GPU that is neither idle nor unknown.
    """

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._live = LiveDiagnosis()

    @property
    def latest(self) -> Diagnosis:
        """The last judgement."""
        return self._live.latest

    def add(self, snapshot: Snapshot) -> list[Event]:
        """Take a sample; return an event for each GPU whose verdict has changed."""
        if not self._live.add(snapshot):
            return []
        self.found = [verdict_row(verdict) for verdict in self._live.latest if verdict.key not in QUIET]
        for row in self.found:
            row["code"] = _code(snapshot, row["uuid"])
        return [verdict_event(verdict, snapshot.time) for verdict in self._live.changes]
