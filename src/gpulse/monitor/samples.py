"""Convert the agent's samples to samples for sinks: values by tag, with the program's progress and events, at their interval."""

from __future__ import annotations

from math import isfinite

from ..analysis.clock import ClockWatch
from ..analysis.events import EventDetector
from ..model.stacks import StackWriter
from ..sinks.base import Sample
from .held import ActivityMeans
from .rhythm import RhythmRates
from .tags import EnergySinceStart, Tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.event import Event
    from ..sinks.base import Alert, PhaseProgress
    from .ledger import Ledger
    from .request import AgentSample

_STACKS = 30.0  # seconds between two samples that have the stacks since the one before


class Samples:
    """Converts samples that are at least `apart` seconds apart; those in between are used for summaries only."""

    def __init__(
        self, ledger: Ledger, apart: float, keys: list[str] | None, run: str = "", stacks: bool = False
    ) -> None:
        """Convert for a run; with `stacks`, for sinks that keep them."""
        self._ledger = ledger
        self._apart = apart
        self._keys = keys
        self._run = run
        self._energy = EnergySinceStart()
        self._tags = Tags(None, keys, self._energy)
        self._at = float("-inf")
        self._detector = EventDetector(ClockWatch())
        self._events: list[Event] = []
        self._alerts: list[Alert] = []
        self._activity = ActivityMeans()
        self._rates = RhythmRates(ledger.rhythm)
        self._progress: dict[str, PhaseProgress] = {}
        self._keeps_stacks = stacks
        self._stacks = StackWriter()
        self._stacks_at = ledger.started

    def greet(self, uuids: list[str] | None) -> None:
        """Set the order of the GPUs as reported by an agent."""
        self._tags = Tags(uuids, self._keys, self._energy)

    def add_alert(self, alert: Alert) -> None:
        """Pass an alert to the sinks with their next sample."""
        self._alerts.append(alert)

    def due(self, taken: AgentSample, last: bool = False) -> Sample | None:
        """Return the sample for sinks; None if it is too close to the previous one and not the `last`."""
        self._events += self._detector.observe(taken.snapshot)
        self._activity.add(taken)
        if taken.at - self._at < (0.0 if last else self._apart):
            return None
        events, self._events = tuple(self._events), []
        alerts, self._alerts = tuple(self._alerts), []
        ledger = self._ledger
        since = taken.at - max(self._at, ledger.started)
        self._at = taken.at
        marks = ledger.new_marks()
        taken = taken.with_snapshot(self._activity.pass_on(taken.snapshot))
        values = self._tags.values(taken)
        values.update(self._rates.since(since))
        values.update(ledger.energy_rates())
        values.update(
            {
                f"mark/{mark.name}": mark.value
                for mark in marks
                if isinstance(mark.value, (int, float)) and isfinite(mark.value)
            }
        )
        return Sample(
            taken.snapshot.time,
            taken.at - ledger.started,
            values,
            taken.snapshot,
            step=ledger.rhythm.reached,
            phase=ledger.phase(),
            run=self._run,
            marks=marks,
            program=taken.program,
            texts=self._tags.texts,
            events=events,
            alerts=alerts,
            progress=self._since_last(),
            stacks=self._new_stacks(taken.at, last),
        )

    def _new_stacks(self, at: float, last: bool) -> dict[str, object] | None:
        code = self._ledger.code
        if code is None or not self._keeps_stacks or (at - self._stacks_at < _STACKS and not last):
            return None
        self._stacks_at = at
        return self._stacks.new(code.stacks())

    def _since_last(self) -> dict[str, PhaseProgress]:
        before, self._progress = self._progress, self._ledger.progress()
        return {name: each.since(before.get(name)) for name, each in self._progress.items()}
