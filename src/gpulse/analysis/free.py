"""Free GPUs: which nobody uses, over a window of samples and not in one, and why the others are not free."""

from __future__ import annotations

import os
from collections import deque
from functools import partial
from math import ceil

from ..errors import NoFreeGpu, UsageError
from ..model.catalog import DOWN, USERS, free_memory
from ..model.codec import printable
from ..model.condition import of_event, xid_of
from ..model.select import Wanted, choose_gpus, granted, selectors
from ..store.claims import claimed
from ..units import size_text
from ..value import Value
from .readings import UNLISTED, number_of, unlisted_memory
from .turns import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..model.catalog import Gpu, Process
    from ..model.snapshot import Snapshot

WANTED = Wanted(
    gpu=(
        *("utilization", "memory_used", "memory_total", "memory_free", "temperature"),
        *("xid_last", "compute_mode", "mig_mode", "memory_unified", "job", "job_user"),
    ),
    process=USERS,
)
# A program between two epochs looks idle for seconds but still holds its context, which rules its GPU out whatever the
# window. So the window need only outlast the driver's own average of utilization, which is a second at the most.
WINDOW = 2.0
INTERVAL = 0.2
_MOST_SAMPLES = 50
_GIB = 1 << 30
_told = partial(printable, most=80)  # of texts that others chose
_COUNTED = ("amd", "intel")  # vendors whose variables can name a GPU by its ordinal


class Requirement:
    """The request: number of GPUs, free bytes on each, and maximum utilization of each in percent.

    With `share` a GPU that others use counts as free if it has that much free memory.
    """

    __slots__ = ("count", "free_memory", "share", "utilization")

    def __init__(
        self, count: int = 1, free_memory: float | None = None, utilization: float | None = None, share: bool = False
    ) -> None:
        if share and free_memory is None:
            raise UsageError(
                "sharing a GPU needs an amount of memory;",
                'add free_memory="10GiB".',
                option="add --memory 10GiB to --share.",
            )
        self.count = count
        self.free_memory = free_memory
        self.share = share
        self.utilization = (100.0 if share else 0.0) if utilization is None else utilization


class Availability(Value):
    """One GPU or MIG instance: `why` says why it is not free, empty when it is; with `hopeless` no waiting changes that.

    `beside`: only other programs keep it from being free, beside which one that needs less memory could run.
    """

    name: str
    gpu: Gpu
    why: str = ""
    hopeless: bool = False
    beside: bool = False


class _Candidate:
    """A GPU, or an instance with the GPU it is part of."""

    __slots__ = ("gpu", "name", "whole")

    def __init__(self, gpu: Gpu, whole: Gpu) -> None:
        self.gpu = gpu
        self.whole = whole
        self.name = f"GPU {number_of(whole) or '?'}"
        if gpu is not whole:
            self.name += f" {_told(gpu.name or 'MIG')} {_told(gpu.uuid or '')}".rstrip()


def samples_for(window: float | None = None) -> tuple[float, int]:
    """Return how often to look, in seconds, and how many samples make a window; without one, WINDOW."""
    window = WINDOW if window is None else max(0.0, window)
    interval = max(INTERVAL, window / _MOST_SAMPLES)
    return interval, round(window / interval) + 1


def availability(
    samples: Iterable[Snapshot],
    size: int,
    asked: Requirement,
    environ: Mapping[str, str],
    words: Sequence[str] | None = None,
) -> Iterator[list[Availability]]:
    """Yield verdicts over the last `size` looks, from the first full window on; once over fewer where there are no more.

    `words` name the GPUs to choose from; raises UnknownGpu, at the first sample, when one fits none. GPUs that the
    environment hides are never chosen, nor those that another has claimed or that Slurm has given to another job.
    """
    window: deque[Snapshot] = deque(maxlen=size)
    whole = False
    for snapshot in samples:
        window.append(snapshot)
        candidates = _candidates(snapshot.gpus, words, environ)
        if len(window) == size:
            whole = True
            yield _judge(window, candidates, asked, environ)
    if window and not whole:
        yield _judge(window, candidates, asked, environ)


def slots(snapshot: Snapshot, verdicts: Iterable[Availability], environ: Mapping[str, str] = os.environ) -> list[Slot]:
    """Return all GPUs of a machine as the queue sees them, the best first: most free memory, then the coolest, then in order."""
    fitting = {verdict.gpu.uuid for verdict in verdicts if not verdict.why}
    parts = [_Candidate(gpu, whole) for whole in snapshot.gpus for gpu in whole.instances or (whole,) if gpu.uuid]
    locks = claimed(str(part.gpu.uuid) for part in parts)
    found = []
    for part in sorted(parts, key=lambda part: _rank(part.gpu)):
        gpu, used = part.gpu, _used(part, (part.gpu,), Requirement()) or _allocated(part, environ)
        fits, locked, broken = gpu.uuid in fitting, gpu.uuid in locks, bool(_broken(part))
        found.append(Slot(str(gpu.uuid), gpu.name or "", gpu.memory_total, not used, fits, locked, broken, used))
    return found


def refusal(
    verdicts: Sequence[Availability], asked: Requirement, verb: str = "pick", waited: bool = False
) -> NoFreeGpu:
    """Return the error that says how many are free, why each of the others is not, and what would count as free.

    `verb` is the command that asks; one that has `waited` is not told to.
    """
    if not verdicts:
        return NoFreeGpu(
            "no GPU to select from;",
            "check CUDA_VISIBLE_DEVICES and gpus=.",
            option="check CUDA_VISIBLE_DEVICES and --gpu.",
        )
    free = sum(not verdict.why for verdict in verdicts)
    reasons = "".join(f"\n  {verdict.name}: {verdict.why}" for verdict in verdicts if verdict.why)
    message = f"{free} of {len(verdicts)} GPUs are free, {asked.count} requested.{reasons}\n"
    if never(verdicts, asked):
        return NoFreeGpu(message, "Request fewer GPUs or less memory.")
    if waited:
        return NoFreeGpu(message)
    beside = _beside(verdicts, asked)
    python = f', or share=True, free_memory="{beside}" to run beside others' if beside else ""
    option = f"; with --share --memory {beside} GPUs in use count as free, too" if beside else ""
    return NoFreeGpu(
        message,
        f"Use wait=True to wait until enough are free{python}.",
        option=f"`gpulse {verb} --wait` waits until enough are free{option}.",
    )


def _beside(verdicts: Sequence[Availability], asked: Requirement) -> str:
    """Return how much memory a request for a share of GPUs in use could have at most; empty if that is less than one GiB."""
    sizes = sorted((free_memory(one.gpu) or 0.0 for one in verdicts if not one.hopeless and one.beside), reverse=True)
    most = sizes[asked.count - 1] // _GIB if len(sizes) >= asked.count and not asked.share else 0
    return f"{most:.0f}GiB" if most and (asked.free_memory or 0.0) <= most * _GIB else ""


def never(verdicts: Iterable[Availability], asked: Requirement) -> bool:
    """Tell whether there are too few GPUs even if all that is going on came to an end."""
    return sum(not verdict.hopeless for verdict in verdicts) < asked.count


def _rank(gpu: Gpu) -> tuple[float, float, float]:
    free = free_memory(gpu)
    # in whole GiB, or a few MiB of the driver's own would outweigh everything else
    return (
        -(free // _GIB) if free is not None else 0.0,
        gpu.temperature if gpu.temperature is not None else float("inf"),
        gpu.index if gpu.index is not None else float("inf"),
    )


def _candidates(gpus: Sequence[Gpu], words: Sequence[str] | None, environ: Mapping[str, str]) -> list[_Candidate]:
    """Return what may be chosen at all; the instances of a divided GPU stand in its place."""
    ours = {id(gpu) for gpu in granted(gpus, environ)}
    named = range(len(gpus)) if words is None else choose_gpus(gpus, words, environ)
    found = [
        _Candidate(gpu, whole)
        for whole in (gpus[at] for at in named)
        for gpu in whole.instances or (whole,)
        if id(gpu) in ours or id(whole) in ours
    ]
    return _alike(found, words is None)


def _alike(candidates: list[_Candidate], any_gpu: bool) -> list[_Candidate]:
    """Keep one vendor's GPUs, the first that there is: no program runs on two. Those with memory of their own come before others."""
    same = [one for one in candidates if one.whole.vendor == candidates[0].whole.vendor]
    own = [one for one in same if not one.whole.memory_unified]
    return own if own and any_gpu else same


def _judge(
    window: Sequence[Snapshot], candidates: Sequence[_Candidate], asked: Requirement, environ: Mapping[str, str]
) -> list[Availability]:
    claims = claimed(candidate.gpu.uuid for candidate in candidates if candidate.gpu.uuid)
    past: dict[str | None, list[Gpu]] = {}
    for snapshot in window:
        for whole in snapshot.gpus:
            for gpu in (whole, *whole.instances):
                past.setdefault(gpu.uuid, []).append(gpu)
    verdicts = []
    for candidate in candidates:
        impossible = _impossible(candidate, asked)
        why = impossible or _broken(candidate) or _claimed(candidate.gpu, claims) or _allocated(candidate, environ)
        used = _used(candidate, past[candidate.gpu.uuid], asked)
        verdicts.append(Availability(candidate.name, candidate.gpu, why or used, bool(impossible), not why))
    return verdicts


def _impossible(candidate: _Candidate, asked: Requirement) -> str:
    """Return why this one can never be chosen."""
    gpu = candidate.gpu
    if gpu.vendor in _COUNTED and gpu.ordinal is None:
        return "no compute runtime lists it"
    name = selectors([gpu]) if gpu.uuid else ""
    if not name.isascii() or not name.replace("-", "").replace("/", "").isalnum():
        return "it has no UUID to be asked for by"  # one that is none would end in somebody's shell
    if gpu is not candidate.whole and asked.count > 1 and gpu.vendor != "amd":
        return "a program can use one MIG instance and no more"
    if asked.free_memory is not None and gpu.memory_total is not None and gpu.memory_total < asked.free_memory:
        return f"it has {size_text(gpu.memory_total)} of memory"
    return ""


def _broken(candidate: _Candidate) -> str:
    """Return why no program could or should run there, regardless of its users."""
    gpu, whole = candidate.gpu, candidate.whole
    if whole.state in DOWN and (condition := of_event(whole.state)) is not None:
        return f"it is {condition.title}"
    if gpu.mig_mode and not gpu.instances:
        return "MIG mode is on and it has no instances"
    if whole.compute_mode == "prohibited":
        return "its compute mode is prohibited"
    if whole.xid_last is not None and xid_of(whole.xid_last).severity == "critical":
        return f"it reported XID {whole.xid_last:.0f}"
    return ""


def _claimed(gpu: Gpu, claims: Mapping[str, str]) -> str:
    if (who := claims.get(gpu.uuid or "")) is not None:
        return f"claimed by {_told(who)}" if who else "claimed"
    return ""


def _allocated(candidate: _Candidate, environ: Mapping[str, str]) -> str:
    """Return whose job Slurm has given it to, whether that uses it yet or not; empty for none and for the job we are in."""
    job = candidate.gpu.job or candidate.whole.job
    if not job or job == f"slurm:{environ.get('SLURM_JOB_ID', '')}":
        return ""
    user = candidate.gpu.job_user or candidate.whole.job_user
    return f"allocated by Slurm to job {_told(job.removeprefix('slurm:'))}{f' of {_told(user)}' if user else ''}"


def _used(candidate: _Candidate, past: Sequence[Gpu], asked: Requirement) -> str:
    """Return who or what keeps it from being free. One that sleeps is free: a program would keep it awake."""
    gpu = candidate.gpu
    if not asked.share:
        for sample in reversed(past):
            if holders := [process for process in sample.processes if process.type != "G"]:
                return _held(holders)
        if gpu.state == "ok" and (why := _memory_in_use(candidate)):
            return why
    shares = sorted(sample.utilization for sample in past if sample.utilization is not None)
    busy = shares[ceil(0.95 * len(shares)) - 1] if shares else None
    if busy is not None and busy > asked.utilization:
        return f"in use {busy:.0f} % of the time, by processes you cannot see"
    free = free_memory(gpu)
    if asked.free_memory is not None and (free is None or free < asked.free_memory):
        return "its free memory is unknown" if free is None else f"{size_text(free)} of memory are free"
    return ""


def _memory_in_use(candidate: _Candidate) -> str:
    """Return what is said of memory that no listed process holds: the one sign of programs that cannot be seen from here."""
    gpu = candidate.gpu
    if gpu.memory_used is None:
        reason = gpu.gaps.get("memory_used")
        known = (
            reason == "unsupported" or (reason == "denied" and gpu.vendor == "intel")
        ) and "processes" not in candidate.whole.gaps
        return "" if known else "its memory cannot be read"
    unlisted = unlisted_memory(gpu)
    return f"{size_text(unlisted)} held by processes you cannot see" if unlisted > UNLISTED else ""


def _held(processes: Sequence[Process]) -> str:
    biggest = max(processes, key=lambda process: process.memory_used or 0)
    size = "" if biggest.memory_used is None else f"{size_text(biggest.memory_used)} "
    program = [_told(biggest.name)] if biggest.name else []
    pid = [] if biggest.pid is None else [f"{biggest.pid:.0f}"]
    more = f" and {len(processes) - 1} more" if len(processes) > 1 else ""
    return f"{size}held by {_told(biggest.user or 'a process')} ({', '.join(program + pid)}){more}"
