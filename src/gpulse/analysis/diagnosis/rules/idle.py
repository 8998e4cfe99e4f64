"""idle: nothing runs and nothing is held."""

from __future__ import annotations

from ...events import IDLE_CPU, IDLE_HELD
from ..rule import DiagnosisRule, Span, Verdict, below, seen

BUSY = 1.0  # percent
DRAWING = 10.0  # percent that a display may take where no process computes


def _judge(span: Span) -> Verdict | None:
    busy = span.busy
    if all(row.state == "asleep" for row in span.gpu.rows):
        return RULE.found(span, "high", [seen("state_asleep", span.seconds)], processes=())
    alone = span.gpu.lists_processes and not span.tracks
    if not span.gpu.lists_processes and (span.high("memory_used") or 0.0) >= IDLE_HELD:
        return None  # somebody holds it
    if busy is None or busy >= (DRAWING if alone else BUSY) or (span.worked and not alone):
        return None
    evidence = [below("busy", busy, DRAWING if alone else BUSY), seen("power_draw", span.mean("power_draw"))]
    if not span.tracks:
        return RULE.found(span, "high", evidence, processes=())
    held, cpu = span.high("memory_used"), span.cpu_tree
    if held is None or held >= IDLE_HELD or span.process_mean("tree_cpu_percent") is None or (cpu or 0.0) >= IDLE_CPU:
        return None
    evidence = [*evidence, below("memory_used", held, float(IDLE_HELD)), below("cpu_tree", cpu, IDLE_CPU)]
    return RULE.found(span, "high", evidence, kind="held")


RULE = DiagnosisRule(
    "idle", "rest", "window", _judge, needs=("utilization",),
    signature=(
        f"No process computes and the GPU was busy for less than {DRAWING:g} % of the time (a display draws; {BUSY:g} % "
        f"where processes cannot be listed), or it was asleep. Processes hold less than {IDLE_HELD >> 20} MiB and use less "
        f"than {IDLE_CPU:g} CPU cores."
    ),
    blind="Light work of processes in other containers looks like that of a display.",
    sources=("gpulse H200 recordings",),
)  # fmt: skip
