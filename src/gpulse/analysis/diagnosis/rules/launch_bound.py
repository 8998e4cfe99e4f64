"""launch_bound: kernels too small to fill the GPU, launched one by one by a busy thread."""

from __future__ import annotations

from ..parts import FILL, GAPS
from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

LEAST = 0.35  # of the time
BUSY = 85.0  # per cent of kernel time above which the batch is small rather than the launch slow


def _judge(span: Span) -> Verdict | None:
    busy, cpu, fill = span.busy or 0.0, span.cpu_main, span.fill
    if busy >= BUSY:
        return None
    seen_well = span.seconds >= 5 and (bool(span.traced) or span.interval <= 0.5)
    certain = fill is not None and fill < 0.4 and busy < 70 and seen_well
    evidence = [
        above("launch_share", 100 * span.parts.get("launch", 0.0), 100 * LEAST),
        seen("cpu_main", cpu),
        below("fill", 100 * fill, 100 * FILL) if fill is not None and fill < FILL else None,
        below("busy", busy, BUSY),
        seen("sm_active", span.mean("sm_active")),
        below("idle_share", 100 * span.idle_share, 100 * GAPS) if span.idle_share < GAPS else None,
    ]
    return RULE.found(span, "high" if certain else "medium", evidence)


RULE = DiagnosisRule(
    "launch_bound", "feeding", "phase", _judge, part="launch", needs=("cpu_percent", "utilization"),
    advice=("cuda_graphs", "larger_batch", "fused_optimizer", "fewer_syncs"),
    signature=(
        f"Launching and small kernels take {100 * LEAST:.0f} % of the time or more: the thread that feeds the GPU runs, "
        f"kernels run less than {BUSY:.0f} % of the time without pauses of 0.2 s, and those that run fill less than "
        f"{100 * FILL:.0f} % of the chip."
    ),
    blind=(
        "Without GPM the size of kernels is not known; then the verdict is host_bound, which says the same of the "
        "thread. A thread that waits for the GPU by spinning looks busy too, so a nearly full GPU is never called "
        "launch-bound."
    ),
    sources=(
        "HTA idle-time analysis: host wait against kernel wait",
        "Trainy: GPU utilization is a misleading metric",
        "gpulse H200 traces `launch` and `lm_tiny_batch`",
    ),
)  # fmt: skip
