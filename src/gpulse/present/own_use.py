"""What a program itself used of a GPU in words, and who else was there, named as others."""

from __future__ import annotations

from ..units import size_text
from .quantities import energy_text
from .text import clean
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.own_use import OtherProcess
    from ..analysis.summary import GpuSummary

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
