"""idle_allocation: processes hold memory and compute nothing."""

from __future__ import annotations

from ...events import IDLE_CPU, IDLE_HELD
from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

BUSY = 1.0  # per cent
_SURE = 30.0  # seconds


def _judge(span: Span) -> Verdict | None:
    held = span.high("memory_used")
    known = bool(span.tracks)
    if (span.gpu.lists_processes and not known) or span.worked or held is None or held < IDLE_HELD:
        return None
    busy, cpu = span.busy, span.cpu_tree
    if not span.quiet:
        return None
    if known and span.process_mean("tree_cpu_percent") is None and span.process_mean("children") is None:
        return None  # its workers may be busy preparing something
    if busy is None or busy >= BUSY or (cpu is not None and cpu >= IDLE_CPU):
        return None
    evidence = [
        above("memory_used", held, float(IDLE_HELD)),
        below("busy", busy, BUSY),
        below("cpu_tree", cpu, IDLE_CPU),
        seen("power_draw", span.mean("power_draw")),
    ]
    return RULE.found(
        span,
        "high" if span.seconds >= _SURE and cpu is not None and known else "medium",
        evidence,
        processes=span.own,
        held=held,
    )


RULE = DiagnosisRule(
    "idle_allocation", "ownership", "window", _judge, needs=("processes", "memory_used", "utilization"),
    advice=("close_notebook", "release_memory", "idle_alert"),
    signature=(
        f"Visible processes hold {IDLE_HELD >> 20} MiB or more, no sample shows a kernel, the GPU draws no more than at rest, and they "
        f"use less than {IDLE_CPU:g} CPU cores."
    ),
    blind="Says that nothing runs now, not that the process is forgotten: a server or a notebook may be needed again in a minute.",
    sources=("Philly trace analysis (ATC 2019): idle time inside allocations", "gpulse H200 trace `idle_alloc`"),
)  # fmt: skip
