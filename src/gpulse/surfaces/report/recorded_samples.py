"""Samples: the snapshots of a recording or of the history, with what a training said beside them."""

from __future__ import annotations

import json

from ...analysis.own_lines import library_of
from ...errors import RecordingError, UsageError
from ...model.catalog import PROCESS_METRICS, Gpu, Process
from ...model.codec import from_plain
from ...model.metric import MOST
from ...model.plausible import drop_implausible
from ...model.select import choose_gpus
from ...model.serving import shareable_words
from ...model.snapshot import Snapshot
from ...model.when import moment_in
from ...sinks.base import PROGRESS, Mark, PhaseProgress
from ...store.recording import read_lines
from ...value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...model.event import Event
    from ...store.history import HistoryReader

_MOST_MARKS = 1000  # of one line
_MOST_PHASES = 1000  # likewise
_WHOLE = 6 * 3600.0  # seconds of a history that are read sample by sample


class RecordedSample(Value):
    """A snapshot and what the program said of itself: `values` by tag, as train/steps_per_second; None where it said nothing.

    `events` are what happened up to this snapshot, from the history; None where nobody has looked for events yet. `peaks` come
    with one snapshot of a history. `progress` is what each phase went through since the sample before; None where it is not known.
    `stacks` are what the program executed, as a StackReader takes it. `gaps` are the times since the sample before in which nothing was
    recorded, as a history knows them; None where only the interval of the samples tells.
    """

    snapshot: Snapshot
    phase: str = ""
    step: float | None = None
    marks: Sequence[Mark] = ()
    program: Process | None = None
    values: Mapping[str, float] = fresh(factory=dict)
    events: Sequence[Event] | None = None
    peaks: Peaks | None = None
    progress: Mapping[str, PhaseProgress] | None = None
    stacks: object = None
    gaps: Sequence[tuple[float, float]] | None = None


def recorded(path: str, damaged: list[int] | None = None) -> Iterator[RecordedSample]:
    """Yield the samples of a recording, in order; errors and `damaged` as in `read_lines`."""
    return read_lines(path, _sample, damaged)


def remembered(
    start: float, end: float, path: str | None = None, told: Callable[[float], None] | None = None
) -> Iterator[RecordedSample]:
    """Yield the samples of this machine's history between two times; raise HistoryError when there is none.

    A long time is read as means of a minute or ten, so that a week takes seconds; events and peaks are those of all samples. `told` is
    called with the part that has been read.
    """
    from ...store.history import HistoryReader

    with HistoryReader(path) as reader:
        peaks: Peaks | None = Peaks(reader, start, end)  # before the events: what is damaged is found by reading
        waiting = reader.events(start, end)
        gaps = reader.recorded(start, end).gaps(start, end)
        for snapshot in reader.snapshots(start, end, _width(end - start)):
            if told is not None:
                told((snapshot.time - start) / (end - start))
            due = [event for event in waiting if event.time <= snapshot.time]
            del waiting[: len(due)]
            passed = [gap for gap in gaps if gap[1] <= snapshot.time + 0.001]
            del gaps[: len(passed)]
            yield RecordedSample(snapshot, events=due, peaks=peaks, gaps=passed)
            peaks = None  # known once, for the whole time


def _width(seconds: float) -> float:
    """Return how many seconds a row may stand for: all samples of six hours, else at most some thousand rows of a quarter."""
    return 0.0 if seconds <= _WHOLE else 60.0 if seconds <= 6 * _WHOLE else 600.0


class Peaks:
    """The highest memory of GPUs (by UUID) and of processes (by PID and name): rows of a history may be means."""

    __slots__ = ("gpus", "processes")

    def __init__(self, reader: HistoryReader, start: float, end: float) -> None:
        self.gpus = {
            series.uuid: max((value for value in series.max if value == value), default=0.0)
            for series in reader.series(["memory_used"], None, start, end)
        }
        self.processes: dict[tuple[float, str], float] = {}
        for use in reader.processes(start, end):
            if use.memory_most is not None:
                key = (use.pid, use.text.get("name", ""))
                self.processes[key] = max(self.processes.get(key, 0.0), use.memory_most)


def between(samples: Iterable[RecordedSample], start: str | None, end: str | None) -> Iterator[RecordedSample]:
    """Yield what lies between two times, each a time or how far into the recording (10m), as `moment_in` reads it; None is no bound."""
    low = high = None
    for sample in samples:
        time = sample.snapshot.time
        if low is None or high is None:
            low = float("-inf") if start is None else _bound("--from", start, time)
            high = float("inf") if end is None else _bound("--to", end, time, None if start is None else low)
        if low <= time <= high:
            yield sample


def of_gpus(
    samples: Iterable[RecordedSample], words: Sequence[str], environ: Mapping[str, str]
) -> Iterator[RecordedSample]:
    """Yield the samples with only some GPUs, named as everywhere; raise UnknownGpu when the first has none of that name."""
    kept: list[str | float | None] | None = None
    for sample in samples:
        gpus = sample.snapshot.gpus
        if kept is None:
            kept = [gpus[at].uuid or gpus[at].index for at in choose_gpus(gpus, words, environ)]
        chosen = tuple(gpu for gpu in gpus if (gpu.uuid or gpu.index) in kept)
        sample.snapshot = sample.snapshot.with_gpus(chosen)
        if sample.events is not None:
            sample.events = [
                event for event in sample.events if not event.uuids or not set(kept).isdisjoint(event.uuids)
            ]
        yield sample


def shareable(samples: Iterable[RecordedSample]) -> Iterator[RecordedSample]:
    """Yield the samples without users, folders of source files and command lines; of these, only words that tell servers apart are left."""
    for sample in samples:
        old, sample.stacks = sample.snapshot, shortened(sample.stacks)
        host = old.host.replace(top_users=None, top_commands=None)
        sample.snapshot = old.replace(gpus=tuple(map(_shareable_gpu, old.gpus)), host=host)
        if sample.program is not None:
            sample.program = _shareable_process(sample.program)
        if sample.events is not None:
            sample.events = [
                event.replace(
                    process=event.process and event.process.replace(user=None, command=None),
                    values={key: value for key, value in event.values.items() if key not in ("user", "command")},
                )
                for event in sample.events
            ]
        yield sample


def _shareable_gpu(gpu: Gpu) -> Gpu:
    processes = tuple(map(_shareable_process, gpu.processes))
    instances = tuple(map(_shareable_gpu, gpu.instances))
    return gpu.replace(processes=processes, instances=instances)


def _shareable_process(process: Process) -> Process:
    return process.replace(user=None, command=shareable_words(process) or None)


def _sample(line: str) -> RecordedSample:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"this line is not JSON ({error}).") from None
    return _with_extras(from_plain(plain), plain)


def _with_extras(snapshot: Snapshot, plain: Mapping[str, Any]) -> RecordedSample:
    """Take what a JsonlSink writes beside the snapshot; what has the wrong type is left out."""
    phase, step, marks, program, values = (plain.get(key) for key in ("phase", "step", "marks", "program", "values"))
    return RecordedSample(
        snapshot,
        phase=phase if isinstance(phase, str) else "",
        step=step if _is_number(step) else None,
        marks=[mark for mark in map(_mark, marks[:_MOST_MARKS]) if mark is not None] if isinstance(marks, list) else (),
        program=_program(program) if isinstance(program, dict) else None,
        values={tag: value for tag, value in values.items() if _is_number(value)} if isinstance(values, dict) else {},
        progress=_progress(plain.get("progress")),
        stacks=plain.get("stacks"),
    )


def _progress(plain: Any) -> dict[str, PhaseProgress] | None:
    if not isinstance(plain, dict) or not isinstance(plain.get(""), dict):
        return None
    return {
        name: PhaseProgress(*(max(0.0, each[key]) if _is_number(each.get(key)) else 0.0 for key in PROGRESS))
        for name, each in [*plain.items()][:_MOST_PHASES]
        if isinstance(each, dict)
    }


def _mark(plain: Any) -> Mark | None:
    if not isinstance(plain, dict) or not isinstance(plain.get("name"), str) or not _is_number(plain.get("time")):
        return None
    value = plain.get("value")
    return Mark(plain["name"], value if _is_number(value) or isinstance(value, str) else None, plain["time"])


def _program(plain: Mapping[str, Any]) -> Process:
    values = {key: value for key, value in plain.items() if key in PROCESS_METRICS}
    drop_implausible(values, {}, PROCESS_METRICS)
    return Process(values)


def _is_number(plain: Any) -> bool:
    return isinstance(plain, (int, float)) and not isinstance(plain, bool) and -MOST < plain < MOST


def _bound(option: str, text: str, first: float, after: float | None = None) -> float:
    try:
        return moment_in(text, first, after)
    except UsageError as error:
        remedy = f"{error.remedy.rstrip('.')}, or as 10m for 10 minutes into the recording."
        raise UsageError(f"{option}: {error.message}", remedy) from None


def shortened(plain: Any) -> Any:
    """Return recorded stacks without the folders of the user's files, which name people and projects."""
    if not isinstance(plain, dict) or not isinstance(frames := plain.get("frames"), dict):
        return None
    return {**plain, "frames": {number: _short(values) for number, values in frames.items()}}


def _short(values: Any) -> Any:
    if (
        not isinstance(values, list)
        or not values
        or not isinstance(values[0], str)
        or library_of(values[0]) is not None
    ):
        return values
    return [values[0].replace("\\", "/").rpartition("/")[2], *values[1:]]
