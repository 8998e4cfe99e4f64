"""Verdicts: what limits each GPU now, as the page shows it."""

from __future__ import annotations

from ..analysis.diagnosis.live import LiveDiagnosis
from ..present.running import running_text
from ..present.verdicts import QUIET, verdict_event, verdict_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..model.catalog import Gpu
    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.verdict import Diagnosis
    from ..monitor.presence import Presence


_RUNS_EVERY = 2.0  # seconds between two questions to Monitors
_NO_RUNS: dict[str, list[Any]] = {"code": [], "runs": [], "pids": []}


def _runs(snapshot: Snapshot) -> dict[str, dict[str, list[Any]]]:
    """Return what Monitors in the processes of each GPU tell their own user: lines of code that keep it waiting, and their runs."""
    from ..model.stacks import CodeLine
    from ..monitor.presence import presences
    from ..present.code import advised

    told: dict[int, Presence] = presences()
    found: dict[str, dict[str, list[Any]]] = {}
    for gpu in snapshot.gpus if told else ():
        if here := [told[pid] for pid in dict.fromkeys(_pids(gpu)) if pid in told]:
            lines = [text for one in here for text in advised([CodeLine(**line) for line in one.code])]
            texts = [running_text(one) for one in here]
            found[gpu.uuid or ""] = {"code": lines, "runs": texts, "pids": [one.pid for one in here]}
    return found


def _pids(gpu: Gpu) -> Iterator[int]:
    return (int(process.pid or 0) for process in gpu.all_processes())


class Verdicts:
    """Judges the last minute every ten seconds. Fed by the hub's thread; `found` and `latest` may be read by any.

    `found` has one entry for each GPU that is neither idle nor unknown.
    """

    def __init__(self, programs: bool = True) -> None:
        """Judge; without `programs`, nothing is said of what programs of this computer tell of themselves."""
        self.found: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, list[Any]]] = {}  # what Monitors say, by GPU: lines of code and runs, in words
        self._programs = programs
        self._asked = float("-inf")
        self._live = LiveDiagnosis()

    @property
    def latest(self) -> Diagnosis:
        """The last judgement."""
        return self._live.latest

    def add(self, snapshot: Snapshot) -> list[Event]:
        """Take a sample; return an event for each GPU whose verdict has changed."""
        judged = self._live.add(snapshot)
        if judged:
            self.found = [verdict_row(verdict) for verdict in self._live.latest if verdict.key not in QUIET]
        if self._programs and (judged or not 0 <= snapshot.time - self._asked < _RUNS_EVERY):
            self._asked = snapshot.time
            self.runs = _runs(snapshot)
        self.found = [row | self.runs.get(row["uuid"], _NO_RUNS) for row in self.found]
        return [verdict_event(verdict, snapshot.time) for verdict in self._live.changes] if judged else []
