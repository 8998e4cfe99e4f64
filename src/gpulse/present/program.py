"""What a program does on its GPUs, as text: its own use and that of others, its ranks, its progress, and how it ended."""

from __future__ import annotations

import os

from ..units import size_text
from .cells import DASH, energy_text, quantity_text, rate_text, seconds_text
from .text import aligned, clean, without_empty
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..analysis.own_use import OtherProcess
    from ..analysis.run_comparison import RankSummary, Straggler
    from ..analysis.summary import GpuSummary
    from ..monitor.presence import Presence

_NAMED = 3  # processes of others
_NAME = 24  # characters


def own_energy_text(joules: float | None, gpus: Sequence[GpuSummary]) -> str:
    """Return the energy of a program on some GPUs, with how it was found where it was not counted."""
    text = energy_text(joules)
    if joules is None or not any(gpu.energy_estimated for gpu in gpus):
        return text
    shared = any(gpu.energy_estimated and gpu.own.used and gpu.own.others for gpu in gpus)
    return f"{text} ({'its share, estimated' if shared else 'estimated'})"


def is_shared(gpu: GpuSummary) -> bool:
    """Tell whether others computed on the GPU, so that what it did is not what the program did."""
    return gpu.own.used is True and not gpu.own.alone


def own_lines(gpus: Sequence[GpuSummary]) -> list[str]:
    """Return a line for the GPUs that the program did not use, and one for all the others that were there."""
    unused = [_label(gpu) for gpu in gpus if gpu.own.used is False and gpu.state == "ok"]
    return [*([f"Your program did not use {gpus_text(unused)}."] if unused else ()), *others_lines(gpus)]


def others_lines(gpus: Sequence[GpuSummary]) -> list[str]:
    """Return one line that names the others on GPUs, the busiest first; none if there were no others."""
    seen: dict[int, list[tuple[str, OtherProcess]]] = {}
    for gpu in gpus:
        for other in gpu.own.others:
            seen.setdefault(other.pid, []).append((_label(gpu), other))
    if not seen:
        return []
    ranked = sorted(seen.values(), key=lambda one: [-_most_busy(one), -_held(one)])
    named = [_other(one) for one in ranked[:_NAMED]]
    more = [f"{len(ranked) - _NAMED} more"] if len(ranked) > _NAMED else []
    return [f"Others: {'; '.join([*named, *more])}."]


def _other(seen: Sequence[tuple[str, OtherProcess]]) -> str:
    """Return one process of somebody else, with what it used of all its GPUs."""
    process = seen[0][1]
    name = clean(process.name or "")[:_NAME] or "a process"
    whose = f"{clean(process.user)[:_NAME]}'s {name}" if process.user else name
    used = [size_text(_held(seen))] if any(other.memory is not None for _, other in seen) else []
    used += [f"SM share {busy:.0f} %"] if (busy := _most_busy(seen)) else []
    where = gpus_text([label for label, _ in seen])
    return f"{whose} (pid {process.pid}) on {where}" + (f": {', '.join(used)}" if used else "")


def _held(seen: Sequence[tuple[str, OtherProcess]]) -> float:
    return sum(other.memory or 0.0 for _, other in seen)


def _most_busy(seen: Sequence[tuple[str, OtherProcess]]) -> float:
    return max(other.sm_utilization or 0.0 for _, other in seen)


def _label(gpu: GpuSummary) -> str:
    return "?" if gpu.index is None else str(gpu.index)


_COLUMNS: tuple[tuple[str, Callable[[RankSummary], str]], ...] = (
    ("steps/s", lambda rank: rate_text(rank.steps / rank.seconds) if rank.steps and rank.seconds else DASH),
    ("step p50", lambda rank: DASH if rank.step_p50 is None else seconds_text(rank.step_p50)),
    ("p95", lambda rank: DASH if rank.step_p95 is None else seconds_text(rank.step_p95)),
    ("max", lambda rank: DASH if rank.step_max is None else seconds_text(rank.step_max)),
    ("wait", lambda rank: f"{100 * rank.waited / rank.seconds:.0f} %" if rank.waited and rank.seconds else DASH),
    ("SM", lambda rank: quantity_text("%", rank.busy)),
    ("peak", lambda rank: quantity_text("B", rank.memory)),
    ("energy", lambda rank: energy_text(rank.energy)),
)


def rank_lines(ranks: Sequence[RankSummary], slowest: Straggler | None, world: int) -> list[str]:
    """Return the table of all ranks, without columns in which nobody has a value, and a sentence about the slowest."""
    hosts = len({rank.host for rank in ranks}) > 1
    rows = [("rank", *(title for title, _ in _COLUMNS))]
    for rank in ranks:
        name = f"{rank.rank} ({clean(rank.host)})" if hosts else str(rank.rank)
        rows.append((name, *(cell(rank) for _, cell in _COLUMNS)))
    lines = aligned(without_empty(rows), lead="  ")
    if missing := world - len(ranks):
        lines.append(f"  {missing} of {world} ranks left no figures: they have no Monitor, or run on another machine.")
    return lines if slowest is None else [*lines, f"  → {straggler_text(slowest)}"]


def straggler_text(found: Straggler) -> str:
    """Return one sentence: Rank 3 is 12 % slower: the others wait 0.8 s per step for it. It waits …"""
    cost, share = seconds_text(found.excess), f"{100 * found.excess / found.step:.0f} % of the time"
    what = (
        f"the others wait {cost} per step for it ({share})" if found.together else f"it needs {cost} more for each step"
    )
    return f"Rank {found.rank.rank} is {found.percent:.0f} % slower: {what}.{_reason(found)}"


def _reason(found: Straggler) -> str:
    if found.reason == "throttled":
        return " Its GPU is throttled."
    if found.own is None or found.others is None:
        return ""
    if found.reason == "data":
        return f" It waits {seconds_text(found.own)} per step for data, the others {seconds_text(found.others)}."
    if found.reason == "clock":
        return f" Its GPU runs at {found.own:.0f} MHz, those of the others at {found.others:.0f} MHz."
    return (
        f" Its GPU computes {found.own:.0f} % of the time, those of the others {found.others:.0f} %: it has more to do."
    )


_LINES = 3
_SHORT = ("Run", "Phase", "Step", "Step time", "Data wait")


def running_text(run: Presence) -> str:
    """Return what a Monitor says of its run on one line, without its lines of code."""
    parts = [(label, text) for label, text in running_parts(run) if label in _SHORT]
    return " · ".join(text if label == "Run" else f"{label.lower()} {text}" for label, text in parts)


def running_parts(run: Presence) -> Iterator[tuple[str, str]]:
    """Yield what a Monitor says of its run, each with a label; what it does not know is left out."""
    rank = "" if run.rank is None else f", rank {run.rank}"
    yield "Run", f"{run.run}{rank} · {seconds_text(run.seconds)}"
    if run.phase:
        yield "Phase", run.phase
    if run.step is not None:
        rate = "" if run.steps_per_second is None else f" · {rate_text(run.steps_per_second)}/s"
        yield "Step", f"{run.step}{rate}"
    times = (("p50", run.step_p50), ("p95", run.step_p95), ("max", run.step_max))
    if known := [f"{name} {seconds_text(value)}" for name, value in times if value is not None]:
        yield "Step time", " · ".join(known)
    if run.data_wait is not None:
        yield "Data wait", f"{run.data_wait:.0f} %"
    for at, line in enumerate(run.code[:_LINES]):
        place = f"{os.path.basename(line['file'])}:{line['line']} {line['function']}"
        yield "" if at else "GPU waits in", f"{place} ({seconds_text(line['waited'])})"


OOM = {
    "cgroup": "the kernel's OOM killer ended it: its container or job reached its memory limit",
    "machine": "the kernel's OOM killer ended a process at that moment: the machine ran out of memory",
}
_UNKNOWN = "killed or crashed; the kernel does not tell how"


def status_text(status: int) -> str:
    """Return how a wait status says a process ended: exit 3, ended by SIGTERM."""
    if not os.WIFSIGNALED(status):
        return f"exit {os.waitstatus_to_exitcode(status)}"
    import signal

    number = os.WTERMSIG(status)
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


def death_text(status: int | None, oom: str = "", terminated: bool = False) -> str:
    """Return how a program ended that did not stop its monitor.

    `status` is its wait status, None if unknown; `oom` a key of OOM, if the OOM killer was seen; `terminated` if its agent was sent
    SIGTERM, too, as schedulers do.
    """
    from signal import SIGKILL

    how = _UNKNOWN if status is None else status_text(status)
    if status is not None and not os.WIFSIGNALED(status):
        return f"{how} without stopping the monitor, as os._exit does"
    if oom and (status is None or os.WTERMSIG(status) == SIGKILL):
        return f"{how}; {OOM[oom]}" if status is not None else OOM[oom]
    if terminated and (status is None or os.WTERMSIG(status) == SIGKILL):
        return f"{how}, after SIGTERM was sent to the whole job"
    return how
