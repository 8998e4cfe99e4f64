"""The account of a run: moments in, one after another and never kept, and what they add up to out."""

from __future__ import annotations

from ...analysis.cpu import CpuMeter
from ...analysis.diagnosis.running import RunningDiagnosis
from ...analysis.diagnosis.waiting import with_wait
from ...analysis.energy import Meter
from ...analysis.events import EventDetector
from ...analysis.tally import Tally
from ...errors import RecordingError
from ...model.cadence import Cadence
from ...model.event import Event
from ...model.presets import CURVES, HOST_CURVES
from .instances import INSTANCE_CURVES, InstanceSpans, instance_label
from .plausibility import believed
from .processes import Uses
from .run import Run
from .timeline import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...analysis.summary import Summary
    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from ...sinks.base import Mark
    from .recorded_samples import Peaks, RecordedSample

_MOST_EVENTS = 5000
_MOST_MARKS = 2000
_NEAR = 60.0  # seconds from the run within which a mark belongs to it
_MOST_SERIES = 20  # that a training may add


def account(moments: Iterable[RecordedSample], name: str) -> Run:
    """Return the run that moments make up; raise RecordingError when there is none."""
    adding = _Account()
    for moment in moments:
        adding.add(moment)
    return adding.run(name)


class _Phase:
    __slots__ = ("calls", "seconds", "tally")

    def __init__(self) -> None:
        self.tally = Tally()
        self.seconds = 0.0
        self.calls = 0


class _Account:
    def __init__(self) -> None:
        self.first: Snapshot | None = None
        self.last: Snapshot | None = None
        self.timeline = Timeline()
        self._events: dict[tuple[object, ...], Event] = {}
        self.uses = Uses()
        self.instances = InstanceSpans()
        self.marks: list[Mark] = []
        self.bands: list[tuple[float, float, str]] = []
        self.problems: dict[tuple[str, str], None] = {}
        self.missing = 0.0
        self._cadence = Cadence()
        self._detector = EventDetector()
        self._diagnosis = RunningDiagnosis()
        self._whole = Tally()
        self._phases: dict[str, _Phase] = {}
        self._phase = ""
        self._meters: dict[str, Meter] = {}
        self._cpu = CpuMeter()
        self._peaks: Peaks | None = None
        self._labels: dict[str, str] = {}
        self._step: float | None = None
        self._tags: set[str] = set()

    def add(self, moment: RecordedSample) -> None:
        moment.snapshot = snapshot = believed(moment.snapshot)
        seconds, late = self._cadence.next(snapshot.time)
        unseen = 0.0
        if late and self.last is not None:
            unseen = snapshot.time - self.last.time - seconds
            self.missing += unseen
            self._note([Event(self.last.time, "gap", until=snapshot.time)])
        gpus = [(self._label(at, gpu), gpu) for at, gpu in enumerate(snapshot.gpus)]
        self._draw(moment, gpus, late)
        self._note(self._detector.observe(snapshot) if moment.events is None else moment.events)
        self._diagnosis.add(snapshot)
        self._diagnosis.note(moment.events or ())
        self.uses.add(gpus, snapshot.time, seconds)
        self.instances.add(gpus, max(seconds, 1e-6))
        self._enter(moment, late)
        for tally in self._tallies(moment.phase):
            tally.add(snapshot, moment.program, max(seconds, 1e-6))
        for key, used, since in self._cpu.add(moment.program, snapshot.time):
            for tally in self._tallies(moment.phase):
                tally.add_cpu(key, used, snapshot.time - since)
        self._count(moment, seconds)
        if moment.peaks is not None:
            self._peaks = moment.peaks
        self._charge(snapshot, seconds, moment.phase, unseen > 0)
        self.marks += moment.marks[: _MOST_MARKS - len(self.marks)]
        for problem in snapshot.problems[:20]:
            if len(self.problems) < 20:
                self.problems.setdefault((problem.source, problem.message))
        self.first = self.first or snapshot
        self.last = snapshot

    def run(self, name: str) -> Run:
        """Return what was added as a value."""
        if self.first is None or self.last is None:
            raise RecordingError(
                f"{name} contains no samples in this time range.", "Choose another time range or file."
            )
        start, end = self.first.time, self.last.time
        if self._peaks is not None:
            self._whole.raise_peaks("memory_used", self._peaks.gpus)
            self.uses.raise_peaks(self._peaks.processes)
        self._note(self._detector.finish())
        for uuid, meter in self._meters.items():
            for phase, joules in meter.rest().items():
                for tally in self._tallies(phase):
                    tally.add_energy(uuid, joules)
        summary = self._summary()
        return Run(
            name,
            self.first,
            self.last,
            summary=summary,
            events=[*self._events.values()],
            uses=self.uses.sorted(),
            instances=self.instances.sorted(),
            timeline=self.timeline,
            labels=list(self._labels.values()),
            bands=self.bands,
            marks=[mark for mark in self.marks if start - _NEAR <= mark.time <= end + _NEAR],
            interval=self._cadence.usual,
            missing=self.missing,
            problems=list(self.problems),
            estimated=any(meter.estimate() for meter in self._meters.values()),
            diagnosis=with_wait(self._diagnosis.diagnosis(), 100 * summary.waited / max(summary.seconds, 1e-9)),
        )

    def _summary(self) -> Summary:
        assert self.first is not None
        assert self.last is not None
        summary = self._whole.summary("", self.last.time - self.first.time - self.missing)
        phases = []
        for name, phase in self._phases.items():
            phases.append(phase.tally.summary(name, phase.seconds))
            phases[-1].calls = phase.calls
        summary.phases = tuple(phases)
        return summary

    def _label(self, at: int, gpu: Gpu) -> str:
        name = gpu.uuid or f"at {at}"
        if name not in self._labels:
            label = f"{gpu.index:.0f}" if gpu.index is not None else str(at)
            taken = self._labels.values()
            self._labels[name] = label if label not in taken else f"{label} ({len(taken)})"
        return self._labels[name]

    def _note(self, events: Iterable[Event]) -> None:
        """Keep events; one that comes again with its end replaces itself."""
        for event in events:
            if event.key in self._events or len(self._events) < _MOST_EVENTS:
                self._events[event.key] = event

    def _draw(self, moment: RecordedSample, gpus: list[tuple[str, Gpu]], late: bool) -> None:
        timeline, host = self.timeline, moment.snapshot.host
        timeline.begin(moment.snapshot.time, late)
        for label, gpu in gpus:
            where = f"gpu {label}"
            for key in CURVES:
                if isinstance(value := gpu.get(key), (int, float)):
                    timeline.add(where, key, value)
            for at, part in enumerate(gpu.instances):
                for key in INSTANCE_CURVES:
                    if isinstance(value := part.get(key), (int, float)):
                        timeline.add(f"instance {instance_label(label, at, part)}", key, value)
        for key in HOST_CURVES:
            if isinstance(value := host.get(key), (int, float)):
                timeline.add("host", key, value)
        for tag, value in moment.values.items():
            if tag in self._tags or len(self._tags) < _MOST_SERIES:
                self._tags.add(tag)
                timeline.add("training", tag, value)

    def _enter(self, moment: RecordedSample, late: bool) -> None:
        """Keep the bands of phases; a sample tells the phase at its time, so a band begins and ends with a sample."""
        time, name = moment.snapshot.time, moment.phase
        if name and name not in self._phases:
            self._phases[name] = _Phase()
        if self.bands and self.bands[-1][2] == self._phase and self._phase and not late:
            self.bands[-1] = (self.bands[-1][0], time, self._phase)
        if name and (name != self._phase or late):
            self._phases[name].calls += name != self._phase
            self.bands.append((time, time, name))
        self._phase = name

    def _tallies(self, phase: str) -> list[Tally]:
        return [self._whole, self._phases[phase].tally] if phase else [self._whole]

    def _count(self, moment: RecordedSample, seconds: float) -> None:
        before, self._step = self._step, moment.step if moment.step is not None else self._step
        values = moment.values
        for tally in self._tallies(moment.phase):
            if before is not None and moment.step is not None:
                tally.steps += int(max(0.0, moment.step - before))
            tally.items += values.get("train/items_per_second", 0.0) * seconds
            tally.waited += values.get("train/data_wait", 0.0) / 100 * seconds
        if moment.phase:
            self._phases[moment.phase].seconds += seconds

    def _charge(self, snapshot: Snapshot, seconds: float, phase: str, unseen: bool) -> None:
        for at, gpu in enumerate(snapshot.gpus):
            uuid = gpu.uuid or f"at {at}"
            if uuid not in self._meters:
                self._meters[uuid] = Meter()
            for name, joules in self._meters[uuid].add(gpu, seconds, phase, unseen):
                for tally in self._tallies(name):
                    tally.add_energy(uuid, joules)
