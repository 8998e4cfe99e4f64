"""Verdicts: what limits each GPU now, as the page shows it."""

from __future__ import annotations

from ..analysis.diagnosis.live import LiveDiagnosis
from ..present.running import running_text
from ..present.verdicts import QUIET, verdict_event, verdict_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.verdict import Diagnosis
    from ..monitor.presence import Presence


def _runs(snapshot: Snapshot, uuid: str) -> list[Presence]:
    """Return what Monitors in the processes of a GPU tell their own user."""
    from ..monitor.presence import presences

    pids = {int(process.pid or 0) for gpu in snapshot.gpus if gpu.uuid == uuid for process in gpu.all_processes()}
    return [one for pid, one in presences().items() if pid in pids]


def _code(runs: list[Presence]) -> list[str]:
    """Return the lines of code that keep a GPU waiting."""
    from ..model.stacks import CodeLine
    from ..present.code import advised

    return [text for one in runs for text in advised([CodeLine(**line) for line in one.code])]


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
            runs = _runs(snapshot, row["uuid"])
            row["code"], row["runs"] = _code(runs), [running_text(one) for one in runs]
        return [verdict_event(verdict, snapshot.time) for verdict in self._live.changes]
