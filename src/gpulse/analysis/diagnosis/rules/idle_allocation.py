"""idle_allocation: processes hold memory and compute nothing."""

from __future__ import annotations

from ...events import IDLE_CPU, IDLE_HELD
from ..load import holder_of
from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

BUSY = 1.0  # per cent
_SURE = 30.0  # seconds


def _judge(case: Case) -> Verdict | None:
    load = case.load
    held = load.high("memory_used")
    known = bool(load.tracks)
    if (case.gpu.lists_processes and not known) or case.worked or held is None or held < IDLE_HELD:
        return None
    busy, cpu = load.busy, load.cpu_tree
    if known and load.process_mean("tree_cpu_percent") is None and load.process_mean("children") is None:
        return None  # its workers may be busy preparing something
    if busy is None or busy >= BUSY or (cpu is not None and cpu >= IDLE_CPU):
        return None
    confidence: Confidence = "high" if load.seconds >= _SURE and cpu is not None and known else "medium"
    evidence = [
        above("memory_used", held, float(IDLE_HELD)),
        below("busy", busy, BUSY),
        below("cpu_tree", cpu, IDLE_CPU),
        seen("power_draw", load.mean("power_draw")),
    ]
    return found(
        load,
        "idle_allocation",
        confidence,
        evidence,
        advice=RULE.advice,
        processes=[holder_of(track) for track in load.own],
        held=held,
    )


RULE = DiagnosisRule(
    "idle_allocation",
    "ownership",
    "window",
    _judge,
    needs=("processes", "memory_used", "utilization"),
    signature=(
        f"Visible processes hold {IDLE_HELD >> 20} MiB or more, no kernel ran in the window, and they use less than {IDLE_CPU:g} CPU "
        "cores."
    ),
    blind="Says that nothing runs now, not that the process is forgotten: a server or a notebook may be needed again in a minute.",
    sources=("Philly trace analysis (ATC 2019): idle time inside allocations", "gpulse H200 trace `idle_alloc`"),
    advice=("close_notebook", "release_memory", "idle_alert"),
)
