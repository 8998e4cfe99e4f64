"""One Slurm job in this machine's history: when it ran and on which GPUs; and a run in the form that the jobstats tools read."""

from __future__ import annotations

import os
import re
import time

from ...errors import GpulseError, UsageError
from ...sources.slurm import SlurmJob, describe_job, has_slurm
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...store.history.answers import ProcessUse
    from .run import Run

_NUMBER = re.compile(r"^(?:slurm:)?(\d{1,12}(?:_\d{1,9})?)$")
_SHORT = 60  # seconds below which jobstats has no figures: two of its samples
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
        words = (
            job.name,
            job.user,
            job.account and f"account {job.account}",
            job.partition and f"partition {job.partition}",
        )
        return " · ".join((f"Slurm job {job.id}", *filter(None, words)))

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
    number: str, gpus: Sequence[str] = (), environ: Mapping[str, str] = os.environ, history: str | None = None
) -> JobSpan:
    """Return when and where a job ran: as Slurm says while it knows the job, else by the job's processes in the history.

    GPUs are those named, else Slurm's, else the environment's of a prolog or epilog, else those its processes used. Raises
    GpulseError if nothing is known of it, HistoryError if there is no history.
    """
    job = (describe_job(number) if has_slurm() else None) or SlurmJob(number)
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


def jobstats(run: Run) -> str:
    """Return a run as the jobstats tools keep it in a job's AdminComment: JS1: and the base64 of the gzip of a JSON text.

    CPU time and host memory of a job are known to its cgroup only, which is gone when a report is written: they are left out.
    """
    import base64
    import gzip
    import json

    span = run.job
    seconds = round(run.end - run.start if span is None else span.end - span.start)
    if seconds < _SHORT:
        return "JS1:Short"
    node: dict[str, Any] = {"gpu_total_memory": {}, "gpu_used_memory": {}, "gpu_utilization": {}}
    for label, gpu in zip(run.labels, run.summary.gpus, strict=True):
        held, busy = gpu.stats.get("memory_used"), gpu.stats.get("utilization")
        node["gpu_total_memory"] |= {} if gpu.memory_total is None else {label: round(gpu.memory_total)}
        node["gpu_used_memory"] |= {} if held is None else {label: round(held.max)}
        node["gpu_utilization"] |= {} if busy is None else {label: round(busy.mean, 1)}
    known = {} if span is None else {"cpus": span.job.cpus, "total_memory": span.job.memory}
    node |= {key: value for key, value in known.items() if value}
    name = (span.job.node if span else None) or (run.last.host.name or "").partition(".")[0]
    told = {"nodes": {name: node}, "total_time": seconds, "gpus": len(run.summary.gpus)}
    text = json.dumps(told, separators=(",", ":")).encode("ascii")
    return "JS1:" + base64.b64encode(gzip.compress(text, mtime=0)).decode("ascii")
