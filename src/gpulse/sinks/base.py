"""The interface of a sink, which receives a monitor's samples; what sinks share (points of curves, packages of others); and sinks by
name: `csv:gpu.csv`, `tensorboard:runs`, or a plug-in with what it needs after a colon."""

from __future__ import annotations

from ..errors import GpulseError, UsageError
from ..value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, TypeAlias

    from ..model.catalog import Process
    from ..model.event import Event
    from ..model.snapshot import Snapshot

    Axis: TypeAlias = Literal["seconds", "train"]
    from ..plugins import Plugin

# name: the module and class, and what follows the colon (in brackets where it may be left out, empty where nothing may follow)
BUILT_IN = {
    "csv": ("files", "CsvSink", "FILE"),
    "jsonl": ("files", "JsonlSink", "FILE"),
    "tensorboard": ("tensorboard", "TensorBoardSink", "[FOLDER]"),
    "wandb": ("trackers", "WandbSink", ""),
    "mlflow": ("trackers", "MlflowSink", "[RUN]"),
    "comet": ("trackers", "CometSink", ""),
    "clearml": ("trackers", "ClearmlSink", ""),
    "swanlab": ("trackers", "SwanlabSink", ""),
    "trackio": ("trackers", "TrackioSink", ""),
    "history": ("files", "HistorySink", "[FILE]"),
}
# what `gpulse.sinks` has, by name, with the module; an AimSink needs a run and so cannot be named in a text
HOMES = {kind: module for module, kind, _ in BUILT_IN.values()} | {
    "AimSink": "trackers",
    **dict.fromkeys(("CallableSink", "Sink", "Sample", "Mark", "Alert"), "base"),
}


class Mark(Value, frozen=True):
    """A mark set by the program; `value` is None if the program gave none."""

    name: str
    value: float | str | None
    time: float


class Alert(Value):
    """An alert of a rule: `state` is "fire" or "clear", `severity` "info", "warn" or "critical", `text` one sentence.

    `event` is what happened, with its GPUs and values. `time` is in seconds since 1970.
    """

    time: float
    rule: str
    state: str
    severity: str
    text: str
    event: Event

    def __hash__(self) -> int:
        return hash((self.time, self.rule, self.state))


class PhaseProgress(Value):
    """What a phase, or the whole run, went through since the previous sample: seconds in it, times it began, and what was counted."""

    seconds: float = 0.0
    calls: float = 0
    steps: float = 0
    items: float = 0.0
    waited: float = 0.0
    tokens: float = 0.0

    def since(self, before: PhaseProgress | None) -> PhaseProgress:
        """Return the difference to an earlier state."""
        if before is None:
            return self
        return PhaseProgress(*(getattr(self, name) - getattr(before, name) for name in PROGRESS))

    def to_plain(self) -> dict[str, float]:
        """Return what is not zero, by name."""
        return {name: round(value, 6) for name in PROGRESS if (value := getattr(self, name))}


PROGRESS = PhaseProgress._fields


class Sample(Value):
    """One sample as passed to sinks; do not modify it.

    `values` holds finite numbers by tag (gpu0/memory_used, host/cpu_percent, process/cpu_percent, train/steps_per_second), and
    omits missing values. `time` is in seconds since 1970, `elapsed` in seconds since the monitor started, and
    grows from sample to sample. `step` counts the program's steps and never decreases; None before the first step.
    `phase` is the innermost phase, or empty; `run` is the id of the run. `marks` are those since the previous sample. `texts`
    describes each tag and
    names its GPU. `snapshot` is the complete snapshot; `program` is the monitored process with its descendants.
    `events` are the events of the GPUs since the previous sample, `alerts` the alerts that fired or cleared since then.
    `progress` is what each phase went through since then, by name, and the whole run under an empty name. `stacks` are what
    `StackWriter` says of the program's stacks since then; None if nothing, or for now.
    """

    time: float
    elapsed: float
    values: Mapping[str, float]
    snapshot: Snapshot
    step: int | None = None
    phase: str = ""
    run: str = ""
    marks: tuple[Mark, ...] = ()
    program: Process | None = None
    texts: Mapping[str, str] = fresh(factory=dict)
    events: tuple[Event, ...] = ()
    alerts: tuple[Alert, ...] = ()
    progress: Mapping[str, PhaseProgress] = fresh(factory=dict)
    stacks: Mapping[str, object] | None = None

    def __hash__(self) -> int:
        return hash((self.time, self.elapsed, self.run))


class Sink:
    """A destination of samples. `open` is called once in the program's thread; `write`, `summarize` and `close` in one other thread.

    A sink imports other packages in `open`, and raises GpulseError if one is missing. If `write` raises, only that sample
    of that sink is lost. `flush` is called from time to time and must not block for long.
    """

    name = "sink"
    processes: tuple[str, ...] = ()  # catalog keys to read for each process on a GPU
    stacks = False  # whether it keeps the stacks of samples
    real_only = False  # whether it takes no samples of a simulated machine

    def open(self) -> None:
        """Prepare; nothing needs to be created before the first sample."""

    def write(self, sample: Sample) -> None:
        """Write one sample."""
        raise NotImplementedError

    def continued(self) -> str:
        """Return the name of a sink that continues this one in another process: csv:/path/to/gpu.csv; empty if there is none."""
        return ""

    def summarize(self, text: str) -> None:
        """Take the lines of code that kept the GPU waiting, as Markdown: once, before `close`, if there are any."""

    def flush(self) -> None:
        """Write buffered data, so that a killed program loses little."""

    def close(self) -> None:
        """Finish; safe to call twice and without `open`."""


class CallableSink(Sink):
    """Calls f(values, step, time) for every sample, in the monitor's thread.

    `values` is a new dict by tag, `step` is None before the first step, `time` is in seconds since 1970.
    """

    name = "callable"

    def __init__(self, f: Callable[[dict[str, float], int | None, float], object]) -> None:
        self._f = f

    def write(self, sample: Sample) -> None:
        self._f(dict(sample.values), sample.step, sample.time)


def load(module: str, package: str, problem: type[GpulseError] = GpulseError) -> Any:
    """Return a module of another package; raise a `problem` with how to install it if it is missing."""
    try:
        found = __import__(module, fromlist=["__name__"])
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        if not missing:
            raise problem(f"{package} cannot be loaded: {error}.", f"Run `pip install -U {package}`.") from None
        found = None
    if getattr(found, "__file__", None) is None:  # only a folder of that name: W&B creates one in every project
        raise problem(f"{package} is not installed.", f"Run `pip install {package}`.")
    return found


class Means:
    """The mean of every tag over several samples; a sample without a tag does not count for it."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, values: Mapping[str, float]) -> None:
        """Add the values of one sample."""
        for tag, value in values.items():
            total, count = self._sums.get(tag, (0, 0))
            self._sums[tag] = (total + value, count + 1)

    def values(self) -> dict[str, float]:
        """Return the means so far."""
        return {tag: total / count for tag, (total, count) in self._sums.items()}


class Point(Value):
    """The values at one step, with the time of the sample, or of the last one if several are averaged, in seconds since 1970."""

    step: int
    time: float
    values: dict[str, float]


class Points:
    """Converts samples to points with increasing steps.

    With "seconds", every sample is a point at once. Its step is the whole seconds elapsed, or one more than the previous step if
    samples come more often, so that none replaces another. With "train", the step is the program's: samples of one step are
    averaged to one point, and samples before the first counted step are omitted, because they belong to no step.
    """

    def __init__(self, axis: Axis) -> None:
        if axis not in ("seconds", "train"):
            raise UsageError(f"unknown step={axis!r};", 'choose "seconds" or "train".')
        self._by_second = axis == "seconds"
        self._base = 0
        self._step = -1
        self._time = 0.0
        self._means: Means | None = None

    def add(self, sample: Sample) -> Point | None:
        """Add a sample; return the point that is complete now, if any."""
        if self._by_second:
            self._step = max(self._base + int(sample.elapsed), self._step + 1)
            return Point(self._step, sample.time, dict(sample.values))
        return self._gather(sample)

    def _gather(self, sample: Sample) -> Point | None:
        step = sample.step
        if step is None or (self._means is None and step <= self._step):
            return None  # belongs to no step, or to one already returned
        means = Means() if self._means is None or step > self._step else self._means
        means.add(sample.values)
        done = None if means is self._means else self.finish()
        self._means, self._step, self._time = means, max(step, self._step), sample.time
        return done

    def resume(self) -> None:
        """Start with another monitor: its seconds continue from the previous ones; steps are the program's."""
        self._means = None
        if self._by_second:
            self._base = self._step + 1
        else:
            self._step = -1

    def finish(self) -> Point | None:
        """Return the point that is being collected, or None."""
        means, self._means = self._means, None
        return None if means is None else Point(self._step, self._time, means.values())


def under(prefix: str, tag: str) -> str:
    """Return the name of a tag with a prefix, which may be empty."""
    return f"{prefix}/{tag}" if prefix else tag


def sink_named(text: str) -> Sink:
    """Return the sink that a text such as `csv:gpu.csv` or `wandb` names; raise UsageError when there is none.

    A plug-in is loaded when the sink is opened, so that a broken one is reported like any sink that cannot be opened.
    """
    name, _, detail = text.partition(":")
    if name in BUILT_IN:
        return _built_in(name, detail, *BUILT_IN[name])
    from ..plugins import SINKS, plugins

    found = plugins(SINKS)
    if (plugin := next((one for one in found if one.name == name), None)) is not None:
        return BorrowedSink(name, lambda: _plugged_in(plugin, detail))
    from ..model.select import did_you_mean

    names = list(dict.fromkeys([*BUILT_IN, *(plugin.name for plugin in found)]))
    guess = did_you_mean(name, names)
    folder = "" if ":" in text else f"write tensorboard:{text} or ./{text} for a folder of TensorBoard, or "
    raise UsageError(f"unknown sink {text!r}{guess}", f"{folder}choose one of {', '.join(names)}.")


def _built_in(name: str, detail: str, module: str, kind: str, needs: str) -> Sink:
    if needs.isupper() and not detail and not needs.startswith("["):
        raise UsageError(f"the sink {name!r} needs a file;", f"write it as {name}:{needs}.")
    if detail and not needs:
        raise UsageError(f"the sink {name!r} takes nothing after its name;", f"write it as {name}.")
    made: type[Sink] = getattr(__import__(f"gpulse.sinks.{module}", fromlist=[kind]), kind)
    return made(detail) if detail else made()  # type: ignore[call-arg]


def _plugged_in(plugin: Plugin, detail: str) -> Sink:
    sink = plugin.call(detail)
    if not isinstance(sink, Sink):
        raise plugin.broken(f"it made a {type(sink).__name__} instead of a gpulse.sinks.Sink")
    return sink


class BorrowedSink(Sink):
    """A sink of another package, made by `open`. It need not inherit from ours: what it does not have of the interface, it does without."""

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name = name
        self._make = make
        self._sink: Any = None

    def open(self) -> None:
        sink = self._make()
        self.processes, self.stacks = getattr(sink, "processes", ()), getattr(sink, "stacks", False)
        sink.open()
        self._sink = sink
        self.path, self.directory = getattr(sink, "path", None), getattr(sink, "directory", None)

    def write(self, sample: Sample) -> None:
        self._sink.write(sample)

    def continued(self) -> str:
        return self._ask("continued") or ""

    def summarize(self, text: str) -> None:
        self._ask("summarize", text)

    def flush(self) -> None:
        self._ask("flush")

    def close(self) -> None:
        try:
            self._ask("close")
        finally:
            self._sink = None

    def _ask(self, method: str, *arguments: Any) -> Any:
        found = getattr(self._sink, method, None)
        return None if found is None else found(*arguments)
