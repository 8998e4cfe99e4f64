"""The contract of a sink: where a monitor's samples go."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..model.catalog import Process
    from ..model.event import Event
    from ..model.snapshot import Snapshot


class Mark:
    """Something the program said of itself: `value` is what it gave with the name, None when it gave nothing."""

    __slots__ = ("name", "time", "value")

    def __init__(self, name: str, value: float | str | None, time: float) -> None:
        self.name = name
        self.value = value
        self.time = time


class Sample:
    """One moment as sinks see it, immutable by agreement.

    `values` holds finite numbers by tag (gpu0/memory_used, host/cpu_percent, process/cpu_percent, train/steps_per_second), a
    value that is missing is left out. `time` is in seconds since 1970, `elapsed` in seconds since the monitor started, and
    grows from sample to sample. `step` counts the program's steps and never goes back; None while it has counted none.
    `phase` is the innermost phase, empty outside of all. `marks` are those since the sample before. `texts` says, by tag,
    what a value is and of which GPU. `snapshot` is all that was read; `program` is the monitored process with its descendants.
    `events` are what happened to the GPUs since the sample before.
    """

    __slots__ = ("elapsed", "events", "marks", "phase", "program", "snapshot", "step", "texts", "time", "values")

    def __init__(
        self,
        time: float,
        elapsed: float,
        values: Mapping[str, float],
        snapshot: Snapshot,
        *,
        step: int | None = None,
        phase: str = "",
        marks: tuple[Mark, ...] = (),
        program: Process | None = None,
        texts: Mapping[str, str] | None = None,
        events: tuple[Event, ...] = (),
    ) -> None:
        self.time = time
        self.elapsed = elapsed
        self.values = values
        self.snapshot = snapshot
        self.step = step
        self.phase = phase
        self.marks = marks
        self.program = program
        self.texts = texts or {}
        self.events = events


class Sink:
    """A place for samples. `open` is called once, in the program's own thread; `write` and `close` in one other thread.

    What a sink needs of other packages it imports in `open`, and raises GpulseError saying what is missing. An error that
    `write` raises costs that sink this sample and nothing else. `flush` is called now and then and must not wait long.
    """

    name = "sink"
    processes: tuple[str, ...] = ()  # what it wants to know of each process on a GPU, by catalog key

    def open(self) -> None:
        """Get ready; nothing has to be made before the first sample."""

    def write(self, sample: Sample) -> None:
        """Take one sample."""
        raise NotImplementedError

    def flush(self) -> None:
        """Hand on what is held back, so that a program that is killed loses little."""

    def close(self) -> None:
        """Finish; safe to call twice and without `open`."""
