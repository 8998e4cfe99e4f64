"""The account of a run: samples in, one after another and never kept, and what they add up to out."""

from __future__ import annotations

from ...analysis.diagnosis.running import RunningDiagnosis, with_wait
from ...analysis.energy import CpuMeter, EnergyMeter, Shares
from ...analysis.events import EventDetector
from ...analysis.own_lines import code_lines
from ...analysis.summary import Mfu
from ...analysis.tally import ServingTally, Tally
from ...errors import RecordingError
from ...model.catalog import COSTLY, CURVES, HOST_CURVES, Gpu
from ...model.event import Event
from ...model.identity import GpuIdentities, rename
from ...model.snapshot import Cadence, Snapshot
from ...model.stacks import StackReader
from ...sinks.base import PhaseProgress
from ...value import Value, fresh
from .charts import Timeline
from .run import INSTANCE_CURVES, Run, Uses, instance_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    from ...analysis.summary import Summary
    from ...model.metric import Reading
    from ...sinks.base import Mark
    from .recorded_samples import Peaks, RecordedSample

    Some = TypeVar("Some", bound=Reading)

_MOST_EVENTS = 5000
_MOST_MARKS = 2000
_STARTING = 5.0  # seconds after the start of a run within which its first sample also stands for the time before it
_NEAR = 60.0  # seconds from the run within which a mark belongs to it
_NO_PEAK = "the program did not know the peak of its GPUs"
_MOST_SERIES = 20  # that a training may add


def account(samples: Iterable[RecordedSample], name: str) -> Run:
    """Return the run that samples make up; raise RecordingError when there is none."""
    adding = _Account()
    for sample in samples:
        adding.add(sample)
    return adding.run(name)


class _Phase(Value):
    tally: Tally = fresh(factory=Tally)
    seconds: float = 0.0
    calls: int = 0


class _Account:
    def __init__(self) -> None:
        self.first: Snapshot | None = None
        self.last: Snapshot | None = None
        self.timeline = Timeline()
        self._events: dict[tuple[object, ...], Event] = {}
        self.uses = Uses()
        self.serving = ServingTally()
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
        self._meters: dict[str, EnergyMeter] = {}
        self._watched = 0.0  # seconds so far
        self._cpu = CpuMeter()
        self._activity = Shares()
        self._lead = 0.0  # seconds before the first sample that it stands for
        self._peaks: Peaks | None = None
        self._identities = GpuIdentities()
        self._labels: dict[str, str] = {}
        self._step: float | None = None
        self._tags: set[str] = set()
        self._stacks = StackReader()

    def add(self, sample: RecordedSample) -> None:
        snapshot = sample.snapshot
        seconds, late = self._cadence.next(snapshot.time)
        if self.first is None and sample.progress is not None and sample.progress[""].seconds < _STARTING:
            seconds = self._lead = sample.progress[""].seconds
        unseen = 0.0
        if self.last is not None:
            seconds, gaps = _recorded(self.last.time, sample, seconds, late)
            unseen = snapshot.time - self.last.time - seconds if gaps else 0.0
            late = bool(gaps)
            self._note(Event(first, "gap", until=last) for first, last in gaps)
            self.missing += unseen
        names = self._identities.keys(snapshot.gpus)
        for kept in (self._labels, self._meters):
            rename(kept, self._identities.renamed)
        gpus = [(self._label(names[at], at, gpu), gpu) for at, gpu in enumerate(snapshot.gpus)]
        self._draw(sample, gpus, late)
        self._note(self._detector.observe(snapshot) if sample.events is None else sample.events)
        self._diagnosis.add(snapshot)
        self._diagnosis.note(sample.events or ())
        self.uses.add(gpus, snapshot.time, seconds)
        self.serving.add(snapshot, max(seconds, 1e-6))
        progress = self._progress(sample, seconds)
        self._enter(sample, late)
        self._count(progress)
        self._tally(sample, progress)
        self._stacks.add(sample.stacks)
        if sample.peaks is not None:
            self._peaks = sample.peaks
        self._charge(snapshot, progress, unseen > 0)
        self.marks += sample.marks[: _MOST_MARKS - len(self.marks)]
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
            for tally, joules in meter.rest():
                tally.add_energy(uuid, joules)
        summary = self._summary()
        return Run(
            name,
            self.first,
            self.last,
            summary=summary,
            events=[*self._events.values()],
            uses=self.uses.sorted(),
            instances=[*self.uses.instances.values()],
            serving=self.serving.sorted(),
            timeline=self.timeline,
            labels=list(self._labels.values()),
            bands=self.bands,
            marks=[mark for mark in self.marks if start - _NEAR <= mark.time <= end + _NEAR],
            interval=self._cadence.usual,
            missing=self.missing,
            problems=list(self.problems),
            estimated=any(meter.estimated for meter in self._meters.values()),
            diagnosis=with_wait(self._diagnosis.diagnosis(), 100 * summary.waited / max(summary.seconds, 1e-9)),
        )

    def _summary(self) -> Summary:
        assert self.first is not None
        assert self.last is not None
        summary = self._whole.summary("", self._lead + self.last.time - self.first.time - self.missing)
        phases = []
        for name, phase in self._phases.items():
            phases.append(phase.tally.summary(name, phase.seconds))
            phases[-1].calls = phase.calls
        summary.phases = tuple(phases)
        summary.mfu = self._mfu()
        summary.stacks = self._stacks.stacks()
        summary.code = [*code_lines(summary.stacks)]
        return summary

    def _mfu(self) -> Mfu | None:
        """Return the mean utilization that the program logged; None if it logged no operations."""
        means = {}
        for key in ("mfu", "flops_per_second"):
            trace = self.timeline.traces.get(("training", f"train/{key}"))
            means[key] = None if trace is None else trace.figures()[0]
        if means["flops_per_second"] is None:
            return None
        return Mfu(means["mfu"], means["flops_per_second"], "" if means["mfu"] is not None else _NO_PEAK)

    def _label(self, name: str, at: int, gpu: Gpu) -> str:
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

    def _draw(self, sample: RecordedSample, gpus: list[tuple[str, Gpu]], late: bool) -> None:
        self.timeline.begin(sample.snapshot.time, late)
        for label, gpu in gpus:
            self._draw_values(f"gpu {label}", gpu, CURVES)
            for at, part in enumerate(gpu.instances):
                self._draw_values(f"instance {instance_label(label, at, part)}", part, INSTANCE_CURVES)
        self._draw_values("host", sample.snapshot.host, HOST_CURVES)
        for tag, value in sample.values.items():
            if tag in self._tags or len(self._tags) < _MOST_SERIES:
                self._tags.add(tag)
                self.timeline.add("training", tag, value)

    def _draw_values(self, where: str, reading: Reading, keys: Iterable[str]) -> None:
        for key in keys:
            if isinstance(value := reading.get(key), (int, float)):
                self.timeline.add(where, key, value)

    def _enter(self, sample: RecordedSample, late: bool) -> None:
        """Keep the bands of phases; a sample tells the phase at its time, so a band begins and ends with a sample."""
        time, name = sample.snapshot.time, sample.phase
        if self.bands and self.bands[-1][2] == self._phase and self._phase and not late:
            self.bands[-1] = (self.bands[-1][0], time, self._phase)
        if name and (name != self._phase or late):
            self.bands.append((time, time, name))
        self._phase = name

    def _tally_of(self, phase: str) -> Tally:
        return self._phases[phase].tally if phase else self._whole

    def _progress(self, sample: RecordedSample, seconds: float) -> dict[str, PhaseProgress]:
        """Return what each phase went through, as recorded, or as far as the phase at the time of the sample tells."""
        before, self._step = self._step, sample.step if sample.step is not None else self._step
        if sample.progress is not None:
            found = {name: each for name, each in sample.progress.items() if name}
            whole = sample.progress[""]
            return {"": PhaseProgress(seconds, 0, whole.steps, whole.items, whole.waited, whole.tokens), **found}
        steps = 0.0 if before is None or sample.step is None else max(0.0, sample.step - before)
        items = sample.values.get("train/items_per_second", 0.0) * seconds
        tokens = sample.values.get("train/tokens_per_second", 0.0) * seconds
        waited = sample.values.get("train/data_wait", 0.0) / 100 * seconds
        each = PhaseProgress(seconds, float(sample.phase != self._phase), steps, items, waited, tokens)
        return {"": each, sample.phase: each} if sample.phase else {"": each}

    def _count(self, progress: Mapping[str, PhaseProgress]) -> None:
        for name, each in progress.items():
            if name and name not in self._phases:
                self._phases[name] = _Phase()
            tally = self._tally_of(name)
            tally.steps += int(each.steps)
            tally.items += each.items
            tally.waited += each.waited
            tally.tokens += each.tokens
            if name:
                self._phases[name].seconds += each.seconds
                self._phases[name].calls += int(each.calls)

    def _tally(self, sample: RecordedSample, progress: Mapping[str, PhaseProgress]) -> None:
        """Add a sample to the run and its phases; what was not read for it is shared when it is read, as in a monitor."""
        snapshot, seconds = sample.snapshot, progress[""].seconds
        parts = [(self._tally_of(name), each.seconds) for name, each in progress.items() if each.seconds > 0]
        for tally, part in parts or [(self._whole, 1e-6)]:
            tally.add(snapshot, sample.program, max(part, 1e-6))
        if all(gpu.get(key) is None for gpu in snapshot.gpus for key in COSTLY):
            self._activity.add(parts, seconds)
        else:
            for tally, unread in self._activity.take():
                tally.add_activity(snapshot, unread)
        self._cpu.add(sample.program, parts, seconds, snapshot.time)

    def _charge(self, snapshot: Snapshot, progress: Mapping[str, PhaseProgress], unseen: bool) -> None:
        parts = [(self._tally_of(name), each.seconds) for name, each in progress.items()]
        seconds = progress[""].seconds
        self._watched += seconds
        for uuid, gpu in zip(self._identities.keys(snapshot.gpus), snapshot.gpus, strict=True):
            if uuid not in self._meters:
                self._meters[uuid] = EnergyMeter()
            for tally, joules in self._meters[uuid].add(gpu, parts, seconds, self._watched, unseen)[0]:
                tally.add_energy(uuid, joules)


def _recorded(
    before: float, sample: RecordedSample, seconds: float, late: bool
) -> tuple[float, Sequence[tuple[float, float]]]:
    """Return the seconds that a sample represents, and the gaps before it: those that a history names, else by the usual interval."""
    time = sample.snapshot.time
    if sample.gaps is None:
        return seconds, [(before, time)] if late else []
    gaps = [(max(before, first), last) for first, last in sample.gaps if last > before]
    return max(0.0, time - before - sum(last - first for first, last in gaps)), gaps
