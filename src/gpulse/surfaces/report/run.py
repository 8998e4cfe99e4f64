"""A run as a value: everything a report says of it."""

from __future__ import annotations

from ...present.verdicts import finding_parts, times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...analysis.cost import Cost
    from ...analysis.serving_tally import ServedRun
    from ...analysis.summary import Stats, Summary
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.tariff import Tariff
    from ...model.verdict import Diagnosis
    from ...sinks.base import Mark
    from ...store.runs import KeptRun
    from .instances import InstanceSpan
    from .job import JobSpan
    from .processes import ProcessSpan
    from .timeline import Timeline


class Run:
    """One run. `labels` are the numbers of the GPUs, in the order of `summary.gpus`; `bands` are phases as (from, to, name).

    `interval` is the usual time between two samples, `missing` the seconds in which nothing was recorded. `estimated` tells that
    the energy of some GPU comes from its power, since it has no counter. `diagnosis` says what limited each GPU,
    `verdict` the same in sentences, empty when nothing can be told, and `times` where the time of each GPU went.
    """

    def __init__(
        self,
        name: str,
        first: Snapshot,
        last: Snapshot,
        *,
        summary: Summary,
        events: Sequence[Event],
        uses: Sequence[ProcessSpan],
        instances: Sequence[InstanceSpan],
        serving: Sequence[ServedRun] = (),
        timeline: Timeline,
        labels: Sequence[str],
        bands: Sequence[tuple[float, float, str]],
        marks: Sequence[Mark],
        interval: float,
        missing: float,
        problems: Sequence[tuple[str, str]],
        estimated: bool,
        diagnosis: Diagnosis,
    ) -> None:
        self.name = name
        self.first = first
        self.last = last
        self.summary = summary
        self.events = events
        self.uses = uses
        self.instances = instances
        self.serving = serving
        self.timeline = timeline
        self.labels = labels
        self.bands = bands
        self.marks = marks
        self.interval = interval
        self.missing = missing
        self.problems = problems
        self.estimated = estimated
        self.tariff: Tariff | None = None
        self.kept: KeptRun | None = None  # what `gpulse runs` knows of it
        self.job: JobSpan | None = None  # the batch job that it is
        self.diagnosis = diagnosis
        self.verdict = finding_parts(diagnosis)
        self.times = times(diagnosis)

    @property
    def cost(self) -> Cost | None:
        """What the run cost at the prices of `tariff`; None without prices."""
        from ...analysis.cost import cost_of

        return cost_of(self.summary, self.tariff)

    @property
    def start(self) -> float:
        """When it began, in seconds since 1970."""
        return self.first.time

    @property
    def end(self) -> float:
        """When it ended, in seconds since 1970."""
        return self.last.time

    @property
    def activity(self) -> str:
        """The metric that says best how busy the GPUs were: SM activity where there is any, else utilization."""
        return "sm_active" if any("sm_active" in gpu.stats for gpu in self.summary.gpus) else "utilization"

    def stats(self, key: str) -> list[Stats]:
        """Return the figures of one metric, of all GPUs that have it."""
        return [gpu.stats[key] for gpu in self.summary.gpus if key in gpu.stats]

    def mean(self, key: str) -> float | None:
        """Return the mean of a metric over all GPUs that have it; None when none has."""
        found = [stats.mean for stats in self.stats(key)]
        return sum(found) / len(found) if found else None

    def count(self, kind: str) -> int:
        """Return how many events of a kind there were."""
        return sum(event.kind == kind for event in self.events)
