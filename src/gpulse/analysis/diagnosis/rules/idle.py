"""idle: nothing runs and nothing is held."""

from __future__ import annotations

from ...events import IDLE_CPU, IDLE_HELD
from ...readings import UNLISTED
from ..rule import DiagnosisRule, Span, Verdict, below, seen

DRAWING = 10.0  # percent that a display may take where no process computes


def _judge(span: Span) -> Verdict | None:
    gpu = span.gpu
    if all(row.state == "asleep" for row in gpu.rows):
        return RULE.found(span, "high", [seen("state_asleep", span.seconds)], processes=())
    whole = Span(gpu, 0, len(gpu), span.active)
    unlisted = 0.0 if gpu.unified else whole.unlisted
    if not gpu.lists_processes or unlisted is None or unlisted >= UNLISTED or not whole.is_resting:
        return None
    drawn = not whole.tracks and any(listed is not None and listed.drawn for listed in gpu.processes)
    busy, most = whole.busy, DRAWING if drawn else 1.0
    if busy is None or busy >= most or (any(whole.active) and not drawn):
        return None
    evidence = [below("busy", busy, most), seen("power_draw", whole.mean("power_draw"))]
    if not whole.tracks:
        return RULE.found(span, "high", evidence, processes=())
    held, cpu = whole.high("memory_used"), whole.cpu_tree
    small = held is not None and held < IDLE_HELD and cpu is not None and cpu < IDLE_CPU
    if not small or not whole.quiet or whole.process_mean("tree_cpu_percent") is None:
        return None
    evidence = [*evidence, below("memory_used", held, float(IDLE_HELD)), below("cpu_tree", cpu, IDLE_CPU)]
    return RULE.found(span, "high", evidence, kind="held")


RULE = DiagnosisRule(
    "idle", "rest", "window", _judge, needs=("processes", "memory_used", "utilization"),
    signature=(
        f"No process is listed, less than {UNLISTED >> 20} MiB are in use beside those of a display, no sample shows any activity "
        f"(where a display draws, less than {DRAWING:g} % of the time), and power or clocks are those of a GPU at rest; or it was "
        f"asleep. Processes that rest may hold less than {IDLE_HELD >> 20} MiB and use less than {IDLE_CPU:g} CPU cores."
    ),
    blind="A GPU whose processes cannot be listed is never called idle.",
    sources=("gpulse H200 recordings",),
)  # fmt: skip
