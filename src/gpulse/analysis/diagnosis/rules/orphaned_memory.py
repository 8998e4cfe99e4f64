"""orphaned_memory: memory is in use and no visible process holds it."""

from __future__ import annotations

from ...events import IDLE_HELD
from ..rule import DiagnosisRule, Span, Verdict, above, seen

_SHORTEST = 3.0  # seconds; activity is a difference of samples, so work is not seen at once


def _judge(span: Span) -> Verdict | None:
    gpu = span.gpu
    # at other states its memory and its processes are not known for all of the time
    silent = any(row.state != "ok" for row in gpu.rows)
    if not gpu.lists_processes or span.worked or silent or span.seconds < _SHORTEST:
        return None
    unowned = _unowned(span)
    if unowned is None or unowned < IDLE_HELD:
        return None
    evidence = [above("memory_unattributed", unowned, float(IDLE_HELD)), seen("memory_used", span.mean("memory_used"))]
    advice = RULE.advice[:2] if gpu.instance else RULE.advice  # a reset would end the other instances too
    return RULE.found(span, "medium", evidence, advice=advice, processes=(), held=unowned)


def _unowned(span: Span) -> float | None:
    """Return the least memory without an owner over the window, from the last two thirds of it: freeing takes a moment."""
    gpu, left = span.gpu, []
    for at in range(len(gpu) // 3, len(gpu)):
        listed, used = gpu.processes[at], gpu.columns["memory_used"][at]
        if listed is None or used is None:
            continue
        known = gpu.columns["memory_unattributed"][at]
        held = [process.memory_used for process, _ in listed]
        if known is None and None in held:
            continue  # what a process holds is not known, so neither is the rest
        left.append(known if known is not None else max(0.0, used - sum(one or 0.0 for one in held)))
    return min(left) if len(left) >= 2 else None


RULE = DiagnosisRule(
    "orphaned_memory", "ownership", "window", _judge, needs=("memory_used", "processes"),
    advice=("find_holders", "zombie", "gpu_reset"),
    signature=(
        f"More than {IDLE_HELD >> 20} MiB is in use that no visible process accounts for, over the whole window, while the "
        "GPU is idle."
    ),
    blind="Processes of other containers, other users or an MPS server hold memory the same way and are not visible from here.",
    sources=("nvtop issue 70", "NVML memory information v2"),
)  # fmt: skip
