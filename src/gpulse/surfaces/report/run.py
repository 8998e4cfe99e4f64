"""A run as a value: everything a report says of it, with its processes and MIG instances, and the Slurm job that it may be."""

from __future__ import annotations

import os
import re
import time

from ...analysis.readings import is_another
from ...analysis.tally import GpuTally
from ...errors import GpulseError, UsageError
from ...model.catalog import GPU_METRICS, slice_share
from ...model.snapshot import Growth
from ...present.verdicts import finding_parts, times
from ...sources.slurm import SlurmJob, describe_job, has_slurm
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ...analysis.energy import Cost
    from ...analysis.summary import GpuSummary, Stats, Summary
    from ...analysis.tally import ServedRun
    from ...model.catalog import Gpu, Process
    from ...model.event import Event
    from ...model.serving import Tariff
    from ...model.snapshot import Snapshot
    from ...model.verdict import Budget, Diagnosis
    from ...sinks.base import Mark
    from ...store.history.answers import ProcessUse
    from ...store.runs import KeptRun
    from .charts import Timeline


def mean_of(summary: Summary, key: str) -> float | None:
    """Return the mean of a metric over all GPUs that have it; None when none has."""
    found = [gpu.stats[key].mean for gpu in summary.gpus if key in gpu.stats]
    return sum(found) / len(found) if found else None


class Run(Value):
    """One run. `labels` are the numbers of the GPUs, in the order of `summary.gpus`; `bands` are phases as (from, to, name).

    `interval` is the usual time between two samples, `missing` the seconds in which nothing was recorded. `estimated` tells that
    the energy of some GPU comes from its power, since it has no counter. `diagnosis` says what limited each GPU,
    `verdict` the same in sentences, empty when nothing can be told, and `times` where the time of each GPU went.
    """

    name: str
    first: Snapshot
    last: Snapshot
    summary: Summary
    events: Sequence[Event]
    uses: Sequence[ProcessSpan]
    instances: Sequence[InstanceSpan]
    timeline: Timeline
    labels: Sequence[str]
    bands: Sequence[tuple[float, float, str]]
    marks: Sequence[Mark]
    interval: float
    missing: float
    problems: Sequence[tuple[str, str]]
    estimated: bool
    diagnosis: Diagnosis
    serving: Sequence[ServedRun] = ()
    tariff: Tariff | None = None
    kept: KeptRun | None = None  # what `gpulse runs` knows of it
    job: JobSpan | None = None  # the batch job that it is

    @property
    def verdict(self) -> list[tuple[str, ...]]:
        """What limited the GPUs, in sentences; empty when nothing can be told."""
        return finding_parts(self.diagnosis)

    @property
    def times(self) -> list[tuple[str, Budget]]:
        """Where the time of each GPU went."""
        return times(self.diagnosis)

    @property
    def cost(self) -> Cost | None:
        """What the run cost at the prices of `tariff`; None without prices."""
        from ...analysis.energy import cost_of

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
        return mean_of(self.summary, key)

    def count(self, kind: str) -> int:
        """Return how many events of a kind there were."""
        return sum(event.kind == kind for event in self.events)


INSTANCE_CURVES = ("sm_active", "memory_used")
_ACTIVITY = ("utilization", "sm_active", "tensor_active", "dram_active")
_SHARED = ("power_draw", "temperature", "clock_sm")  # measured for the whole GPU only


def instance_label(gpu: str, at: int, part: Gpu) -> str:
    """Return what an instance is called: the label of its GPU, a colon, and its own number, as in `gpulse status`."""
    return f"{gpu}:{at}" if part.index is None else f"{gpu}:{part.index:.0f}"


class InstanceSpan:
    """One instance: `gpu` is the label of its GPU, `label` both numbers."""

    def __init__(self, gpu: str, label: str, part: Gpu) -> None:
        self.gpu = gpu
        self.label = label
        self._tally = GpuTally(part)
        self._programs: dict[tuple[str, str], tuple[float, set[float]]] = {}

    def add(self, part: Gpu, seconds: float) -> None:
        """Add a sample that represents `seconds`."""
        self._tally.add(part, seconds)
        for process in part.processes:
            key = (process.user or "", process.name or "")
            most, pids = self._programs.get(key, (0.0, set()))
            pids.add(process.pid or 0.0)
            self._programs[key] = (max(most, process.memory_used or 0.0), pids)

    def summary(self) -> GpuSummary:
        """Return its figures."""
        return self._tally.summary(telling=False)

    def programs(self) -> list[tuple[str, str, int]]:
        """Return user, program and number of processes, those with the most memory first."""
        found = sorted(self._programs.items(), key=lambda one: (-one[1][0], one[0]))
        return [(user, name, len(pids)) for (user, name), (_, pids) in found]

    def unmeasured(self) -> list[str]:
        """Return the titles of what was never measured for this instance."""
        return [GPU_METRICS[key].title for key in (*_ACTIVITY, *_SHARED) if key not in self._tally.series]

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "gpu": self.gpu,
            "instance": self.label,
            **self.summary().to_plain(),
            "programs": [{"user": user, "name": name, "processes": count} for user, name, count in self.programs()],
        }


class ProcessSpan:
    """One process over a run: `peak` is the most bytes it held on one GPU, `share` mean percent of time it ran kernels, None if unknown.

    `hours` are GPU-hours; a GPU that several hold at once is shared evenly, so all add up to the time GPUs were held. A MIG
    instance counts by its slices.
    """

    __slots__ = ("_busy", "_ran", "_watched", "first", "gpus", "hours", "instances", "last", "peak", "process")

    def __init__(self, process: Process, time: float) -> None:
        self.process = process
        self.first = self.last = time
        self.gpus: list[str] = []
        self.instances: list[str] = []  # MIG instances, as "0:1"
        self.peak: float | None = None
        self.hours = 0.0
        self._busy = 0.0
        self._ran: dict[str, Growth] = {}
        self._watched = 0.0

    def add(self, process: Process, gpu: str, time: float, seconds: float, share: float) -> None:
        """Add what it did in a number of seconds on a GPU; `share` is its part of the GPU."""
        self.process = process
        self.last = time
        if gpu not in self.gpus:
            self.gpus.append(gpu)
        self.hours += seconds * share / 3600
        if process.memory_used is not None:
            self.peak = process.memory_used if self.peak is None else max(self.peak, process.memory_used)
        if process.sm_utilization is not None:
            self._watched += seconds
            self._busy += self._busy_seconds(process, gpu, time, seconds)

    def _busy_seconds(self, process: Process, gpu: str, time: float, seconds: float) -> float:
        """Return the seconds in which its kernels are now known to have run."""
        if process.sm_time is None:
            return (process.sm_utilization or 0.0) / 100 * seconds
        if gpu not in self._ran:
            self._ran[gpu] = Growth()
            self._watched -= seconds
        growth = self._ran[gpu].grown(process.sm_time, time)
        return 0.0 if growth is None else growth[0]

    def place(self, instance: str) -> None:
        """Note the MIG instance it runs on."""
        if instance and instance not in self.instances:
            self.instances.append(instance)

    @property
    def share(self) -> float | None:
        """Mean share of time in which its kernels ran, over its GPUs."""
        return min(100.0, 100 * self._busy / self._watched) if self._watched > 0 else None

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        process = self.process
        known = {key: process.get(key) for key in ("pid", "user", "name", "command", "job", "container", "pod", "type")}
        return known | {
            "gpus": list(self.gpus),
            "instances": list(self.instances),
            "first_seen": self.first,
            "last_seen": self.last,
            "peak_memory": self.peak,
            "sm_utilization": self.share,
            "gpu_hours": self.hours,
        }


class Uses:
    """All processes of a run, and its MIG `instances` by UUID."""

    def __init__(self) -> None:
        self._uses: dict[tuple[float, str], ProcessSpan] = {}
        self._ended: list[ProcessSpan] = []  # processes whose PID was given to another one
        self.instances: dict[str, InstanceSpan] = {}

    def add(self, gpus: Iterable[tuple[str, Gpu]], time: float, seconds: float) -> None:
        """Add a sample that represents `seconds`; GPUs come with their labels."""
        for label, gpu in gpus:
            self._add_part(label, gpu, 1.0, time, seconds)
            for at, part in enumerate(gpu.instances):
                own = instance_label(label, at, part)
                self._add_part(label, part, slice_share(dict(part.items())), time, seconds, own)
                name = part.uuid or own
                if name not in self.instances:
                    self.instances[name] = InstanceSpan(label, own, part)
                self.instances[name].add(part, max(seconds, 1e-6))

    def _add_part(self, label: str, part: Gpu, share: float, time: float, seconds: float, instance: str = "") -> None:
        there = [process for process in part.processes if process.pid is not None]
        for process in there:
            key = (process.pid or 0.0, process.name or "")
            known = self._uses.get(key)
            if known is not None and is_another(known.process, process, time - known.last):
                self._ended.append(self._uses.pop(key))
            if key not in self._uses:
                self._uses[key] = ProcessSpan(process, time)
            self._uses[key].add(process, label, time, seconds, share / len(there))
            self._uses[key].place(instance)

    def raise_peaks(self, peaks: Mapping[tuple[float, str], float]) -> None:
        """Take peaks, by PID and name, that are higher than those seen."""
        for key, use in self._uses.items():
            if key in peaks:
                use.peak = max(use.peak or 0.0, peaks[key])

    def sorted(self) -> Sequence[ProcessSpan]:
        """Return them, the most GPU-hours first."""
        return sorted((*self._ended, *self._uses.values()), key=lambda use: (-use.hours, use.process.pid or 0.0))


_NUMBER = re.compile(r"^(?:slurm:)?(\d{1,12}(?:_\d{1,9})?)$")
_TEXTS = ("id", "name", "user", "account", "partition", "state", "node")


class JobSpan(Value):
    """A job with the time it ran, in seconds since 1970, and the names of its GPUs on this machine, as `--gpu` takes them."""

    job: SlurmJob
    start: float
    end: float
    gpus: Sequence[str]

    @property
    def title(self) -> str:
        """What the report is called."""
        job = self.job
        more = [f"{word} {value}" for word in ("account", "partition") if (value := getattr(job, word))]
        return " · ".join((f"Slurm job {job.id}", *filter(None, (job.name, job.user)), *more))

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data, ready for JSON."""
        return {key: getattr(self.job, key) for key in _TEXTS} | {"gpus": list(self.gpus)}


def job_number(text: str) -> str:
    """Return the number of a job, 12345 or 12345_7 for a task of an array; raise UsageError if it is none."""
    found = _NUMBER.match(text)
    if found is None:
        raise UsageError(f"--job: {text!r} is not the number of a Slurm job;", "write it as --job 12345.")
    return found[1]


def job_span(
    number: str,
    gpus: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
    history: str | None = None,
    *,
    slurm: bool = True,
) -> JobSpan:
    """Return when and where a job ran: as Slurm says while it knows the job, else by the job's processes in the history.

    GPUs are those named, else Slurm's, else the environment's of a prolog or epilog, else those its processes used. Raises
    GpulseError if nothing is known of it, HistoryError if there is no history. Without `slurm` only the history is read.
    """
    job = (describe_job(number) if slurm and has_slurm() else None) or SlurmJob(number)
    uses = _uses(job, history)
    given = environ.get("SLURM_JOB_GPUS", "") if environ.get("SLURM_JOB_ID") == job.id else ""
    words = gpus or [str(index) for index in job.gpus or ()] or [word for word in given.split(",") if word]
    words = words or list(dict.fromkeys(use.uuid for use in uses))
    now = time.time()
    start = job.start or min((use.first for use in uses), default=None)
    if start is None or not words:
        what = "Slurm does not know it (any more)" if start is None else "it has no GPU here"
        raise GpulseError(f"job {number}: no process of it is in this machine's history, and {what}.")
    end = job.end or max((use.last for use in uses), default=now)
    job.user = job.user or next((use.text["user"] for use in uses if "user" in use.text), None)
    return JobSpan(job, start, now if job.state == "RUNNING" else min(end, now), tuple(words))


def _uses(job: SlurmJob, history: str | None) -> list[ProcessUse]:
    """Return the processes of a job in the history."""
    from ...store.history import HistoryReader

    with HistoryReader(history) as reader:
        first, last = reader.span() or (0.0, 0.0)
        begin = first if job.start is None else max(first, job.start - 60)
        return [use for use in reader.processes(begin, last + 1) if use.text.get("job") == job.key]
