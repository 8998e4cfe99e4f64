"""What a monitor asks of its agent, what the agent answers, and what is kept of answers because not every sample reads it.

In a separate process the messages are lines of JSON, with snapshots as in recordings.
"""

from __future__ import annotations

import os
import time
from collections import deque
from itertools import pairwise

from ..errors import GpulseError, RecordingError
from ..model.catalog import COSTLY, EVIDENCE, HOST_CURVES, PROCESS_EVIDENCE, TIMED_POWER, TRAINING
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TextIO, TypeAlias

    from ..analysis.out_of_memory import MemoryGrowth
    from ..model.catalog import Gpu, Process
    from ..model.event import Event
    from ..model.metric import Value as MetricValue
    from ..model.snapshot import Snapshot

    Message: TypeAlias = "Birth | Greeting | AgentSample | Trouble"

SELDOM = 1.0  # seconds between two reads of the activity counters and process lists, if samples come more often
HOST = ("name", "memory_total", "cpu_count", *HOST_CURVES)
# What summaries and verdicts need to know of every process on a GPU; how long their kernels ran costs 2 ms per GPU every 5 s.
PROCESSES = (*PROCESS_EVIDENCE, "user")
HOST_CONSTANTS = frozenset({"memory_total", "cpu_count"})
PART_OF = "GPULSE_RUN"  # environment variable with the id of the `gpulse run` that a program is part of


def new_run() -> str:
    """Return a name for a run that sorts by time and is its own: 20261116-062301-4f2a1c."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


def descriptor_of(stream: TextIO | None) -> int:
    """Return the descriptor of a stream; -1 for one that has none, as in a notebook."""
    try:
        return -1 if stream is None else stream.fileno()
    except (OSError, ValueError, AttributeError):
        return -1


class Request(Value):
    """What to read, how often, from which GPUs, and for which process.

    `run` is the id of the run. `root` and its descendants are the program: `pid` itself, or the launcher of the ranks that it samples for.
    `gpus` is "all", "visible", or a list of names; `uuids` are the GPUs by ordinal, if known. `processes` are metrics to read for
    each process on a GPU besides the usual ones. `path` is the import path for a source that is a plug-in. `alerts`: whether to
    look for them. `without_gpus`: if no GPU can be read, go on with the host and the program. `stacks`: the program samples its stacks,
    which need the driver's own samples of power beside them.
    `started` is when the run was, on the monotonic clock. If the program is killed, the agent writes its last sample to `files`
    (sinks by name) and, with `report`, the report to the program's descriptor `stderr`. `shared` is a folder that
    all machines of the job can write to. `serving`: whether model servers are asked how they are doing.
    """

    pid: int
    run: str = ""
    root: int | None = None
    interval: float = 1.0
    metrics: Sequence[str] | None = None
    gpus: str | list[str] = "visible"
    uuids: list[str] | None = None
    source: str = "auto"
    processes: Sequence[str] = ()
    path: Sequence[str] = ()
    alerts: bool = False
    without_gpus: bool = False
    started: float = 0.0
    report: bool = False
    files: Sequence[str] = ()
    stderr: int = -1
    shared: str | None = None
    stacks: bool = False
    serving: bool = False

    @property
    def asked(self) -> frozenset[str]:
        """The GPU metrics to read: those to log, and those that verdicts need, so that these do not depend on what is logged."""
        from ..analysis.diagnosis.window import WANTED

        traced = TIMED_POWER if self.stacks else ()
        return WANTED.gpu.union(EVIDENCE, traced, TRAINING if self.metrics is None else self.metrics)

    @property
    def asked_of_processes(self) -> frozenset[str]:
        """The metrics to read for each process on a GPU."""
        return frozenset((*PROCESSES, *self.processes))

    @property
    def costly_every(self) -> float:
        """Seconds between two reads of what costs the GPU most, if samples come more often: 0 if the user asked for exactly that."""
        return SELDOM if COSTLY.isdisjoint(self.metrics or ()) else 0.0


class Birth(Value):
    """The agent's first message: its PID, which differs from that of the process that was started for it."""

    pid: int


class Greeting(Value):
    """The agent is ready: its GPUs by ordinal (None: all, by the driver's index), and whether that order is certain."""

    uuids: list[str] | None
    certain: bool = True


class AgentSample(Value):
    """One sample: `at` is the monotonic clock, shared by all processes of a machine; `program` is None if it could not be read.

    `own` are the PIDs on the GPUs that belong to the program; None if processes cannot be told apart. `slow`: what is read
    every few seconds was read for this sample. `alerts` are those that fired or cleared with it.
    """

    at: float
    snapshot: Snapshot
    program: Process | None
    own: frozenset[int] | None = None
    slow: bool = False
    alerts: Sequence[Event] = ()


class Trouble(Value):
    """What is wrong, in one sentence; `fatal` if the agent cannot continue."""

    message: str
    fatal: bool = True

    @classmethod
    def from_error(cls, error: Exception) -> Trouble:
        """Return what ended an agent: an error of ours is a sentence."""
        return cls(str(error) if isinstance(error, GpulseError) else f"{type(error).__name__}: {error}")


_PLAIN = {"birth": Birth, "greeting": Greeting, "trouble": Trouble}  # messages that are written as their fields


def encode(message: Message) -> bytes:
    """Return a message as a line."""
    import json

    from ..model.codec import to_plain

    if isinstance(message, AgentSample):
        plain = to_plain(message.snapshot)
        plain["at"], plain["slow"] = message.at, message.slow
        plain["own"] = None if message.own is None else [*message.own]
        if message.alerts:
            plain["alerts"] = [event.to_plain() for event in message.alerts]
        if message.program is not None:
            plain["program"] = {**dict(message.program.items()), "gaps": dict(message.program.gaps)}
    else:
        plain = {type(message).__name__.lower(): message.to_plain()}
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Message | None:
    """Return the message in a line; None if the line is not a message, for example truncated by a dying process."""
    import json

    from ..model.codec import from_plain
    from ..model.event import Event

    try:
        plain = json.loads(line)
        for name, kind in _PLAIN.items():
            if name in plain:
                return kind(**plain[name])  # type: ignore[no-any-return]
        program, own = plain.get("program"), plain.get("own")
        return AgentSample(
            float(plain["at"]),
            from_plain(plain),
            None if program is None else _program(program),
            None if own is None else frozenset(map(int, own)),
            bool(plain.get("slow")),
            [Event.from_plain(event) for event in plain.get("alerts", ())],
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, RecordingError):
        return None


def _program(plain: dict[str, object]) -> Process:
    from ..model.catalog import Process
    from ..model.metric import GAPS

    gaps = plain.pop("gaps", None)
    values = {key: value for key, value in plain.items() if isinstance(value, (int, float))}
    return Process(values, {k: v for k, v in gaps.items() if v in GAPS} if isinstance(gaps, dict) else {})


_POINTS = 600  # ten minutes at one sample per second; 10 KB per GPU
_RISES = 4  # how many quarters of the time must each end higher than they began for steady growth
_FLOOR = 64 << 20  # bytes of growth below which nothing is said


class LastValues:
    """The last activity values and process lists by UUID; filled by one thread, read by any."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, MetricValue]] = {}
        self._processes: dict[str, tuple[Process, ...]] = {}

    def add(self, snapshot: Snapshot) -> bool:
        """Keep the values of a sample; return whether it has any activity values."""
        found = [self._keep(part) for gpu in snapshot.gpus for part in (gpu, *gpu.instances)]
        return any(found)

    def complete(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the last values for what was not read this time."""
        if all("processes" not in gpu.gaps for gpu in snapshot.gpus):
            return snapshot  # everything was read
        return snapshot.replace(gpus=tuple(map(self._completed, snapshot.gpus)))

    def _keep(self, gpu: Gpu) -> bool:
        uuid = gpu.uuid or ""
        if gpu.gaps.get("processes") != "skipped":
            self._processes[uuid] = gpu.processes
        found = {key: value for key in COSTLY if (value := gpu.get(key)) is not None}
        if found or not COSTLY.isdisjoint(gpu.gaps) or gpu.state != "ok":
            self._values[uuid] = found
        return bool(found)

    def _completed(self, gpu: Gpu) -> Gpu:
        if gpu.gaps.get("processes") != "skipped" or gpu.state != "ok":
            return gpu
        return self._filled(gpu, tuple(map(self._filled, gpu.instances)))

    def _filled(self, gpu: Gpu, instances: tuple[Gpu, ...] = ()) -> Gpu:
        uuid = gpu.uuid or ""
        kept = {key: value for key, value in self._values.get(uuid, {}).items() if gpu.get(key) is None}
        return _with(gpu, kept, {"processes"}, self._processes.get(uuid, ()), instances)


class ActivityMeans:
    """The activity values of the samples that were not passed on; used by one thread."""

    def __init__(self) -> None:
        self._read_at: dict[str, float] = {}
        self._sums: dict[str, dict[str, tuple[float, float]]] = {}  # by UUID and key: value times seconds, and seconds
        self._reads: dict[str, int] = {}
        self._lists: dict[str, tuple[Process, ...]] = {}

    def add(self, taken: AgentSample) -> None:
        """Add a sample, whether it is passed on or not."""
        for gpu in taken.snapshot.gpus:
            uuid = gpu.uuid or ""
            if gpu.gaps.get("processes") != "skipped":
                self._lists[uuid] = gpu.processes
            found = {key: value for key in COSTLY if isinstance(value := gpu.get(key), (int, float))}
            if not found:
                continue
            seconds = max(1e-6, taken.at - self._read_at.get(uuid, taken.at))
            self._read_at[uuid] = taken.at
            self._reads[uuid] = self._reads.get(uuid, 0) + 1
            sums = self._sums.setdefault(uuid, {})
            for key, value in found.items():
                total, covered = sums.get(key, (0.0, 0.0))
                sums[key] = (total + value * seconds, covered + seconds)

    def pass_on(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the means, and the process lists if this sample has none, since the last call."""
        gpus = tuple(map(self._complete, snapshot.gpus))
        self._sums, self._reads, self._lists = {}, {}, {}
        if all(new is old for new, old in zip(gpus, snapshot.gpus, strict=True)):
            return snapshot
        return snapshot.replace(gpus=gpus)

    def _complete(self, gpu: Gpu) -> Gpu:
        uuid = gpu.uuid or ""
        sums = self._sums.get(uuid, {})
        means: dict[str, MetricValue] = {}
        if self._reads.get(uuid) != 1 or all(gpu.get(key) is None for key in sums):
            means = {key: round(total / covered, 2) for key, (total, covered) in sums.items()}
        listed = self._lists.get(uuid) if gpu.gaps.get("processes") == "skipped" else None
        if gpu.state != "ok" or not (means or listed is not None):
            return gpu
        known = {*means} if listed is None else {*means, "processes"}
        processes = gpu.processes if listed is None else listed
        return _with(gpu, means, known, processes, gpu.instances)


def _with(
    gpu: Gpu,
    values: dict[str, MetricValue],
    known: Collection[str],
    processes: tuple[Process, ...],
    instances: tuple[Gpu, ...],
) -> Gpu:
    """Return a GPU with some other values, without the gaps of what is known now."""
    gaps = {key: gap for key, gap in gpu.gaps.items() if key not in known}
    return gpu.replace(**values, gaps=gaps, processes=processes, instances=instances)


class EnergySinceStart:
    """The energy of each GPU since the run started; the driver counts since it was loaded, which says nothing about a run.

    Filled by one thread, read by any.
    """

    def __init__(self) -> None:
        # by UUID: the driver's count, None before it was read, and the energy since the start
        self._counts: dict[str, tuple[float | None, float]] = {}

    def add(self, snapshot: Snapshot, seconds: float) -> None:
        """Add a sample that stands for some seconds, whose energy power tells until the counter was read, as in summaries.

        A counter that fell was reset with the driver, and counting continues.
        """
        for gpu in snapshot.gpus:
            count, since = self._counts.get(gpu.uuid or "", (None, 0.0))
            read = count if gpu.energy is None else gpu.energy
            grown = seconds * (gpu.power_draw or 0.0) if count is None else max(0.0, (read or 0.0) - count)
            self._counts[gpu.uuid or ""] = (read, since + grown)

    def joules(self, gpu: Gpu) -> float:
        """Return the energy of a GPU so far."""
        return self._counts.get(gpu.uuid or "", (None, 0.0))[1]


class MemoryTrail:
    """Memory in use by GPU over the last samples; filled by one thread, read by any."""

    def __init__(self) -> None:
        self._points: dict[str, deque[tuple[float, float]]] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add a sample."""
        for gpu in snapshot.gpus:
            if gpu.uuid is not None and gpu.memory_used is not None:
                trail = self._points.setdefault(gpu.uuid, deque(maxlen=_POINTS))
                trail.append((snapshot.time, gpu.memory_used))

    def growth(self, uuid: str | None) -> MemoryGrowth | None:
        """Return how the memory of a GPU changed; None if there are too few samples."""
        from ..analysis.out_of_memory import MemoryGrowth  # which only a program that runs out of memory needs

        points = [*self._points.get(uuid or "", ())]
        if len(points) < 2 * _RISES:
            return None
        first, last = points[0], points[-1]
        edges = [points[round(at * (len(points) - 1) / _RISES)][1] for at in range(_RISES + 1)]
        rises = sum(after > before for before, after in pairwise(edges))
        return MemoryGrowth(first[1], last[1], last[0] - first[0], rises == _RISES and last[1] - first[1] > _FLOOR)
