"""launch_bound: kernels too small to fill the GPU, launched one by one by a busy thread."""

from __future__ import annotations

from ..parts import FILL, GAPS
from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

LEAST = 0.35  # of the time
BUSY = 85.0  # per cent of kernel time above which the batch is small rather than the launch slow


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, cpu, fill = load.busy or 0.0, load.cpu_main, load.fill
    if busy >= BUSY:
        return None
    certain = (
        fill is not None
        and fill < 0.4
        and busy < 70
        and load.seconds >= 5
        and (bool(load.traced) or load.interval <= 0.5)
    )
    confidence: Confidence = "high" if certain else "medium"
    evidence = [
        above("launch_share", 100 * load.parts.get("launch", 0.0), 100 * LEAST),
        seen("cpu_main", cpu),
        below("fill", None if fill is None else 100 * fill, 100 * FILL) if fill is not None and fill < FILL else None,
        below("busy", busy, BUSY),
        seen("sm_active", load.mean("sm_active")),
        below("idle_share", 100 * load.idle_share, 100 * GAPS) if load.idle_share < GAPS else None,
    ]
    return found(load, "launch_bound", confidence, evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "launch_bound",
    "feeding",
    "phase",
    _judge,
    part="launch",
    needs=("cpu_percent", "utilization"),
    signature=(
        f"Launching and small kernels take {100 * LEAST:.0f} % of the time or more: the thread that feeds the GPU runs, kernels run less "
        f"than {BUSY:.0f} % of the time without pauses of 0.2 s, and those that run fill less than {100 * FILL:.0f} % of the chip."
    ),
    blind=(
        "Without GPM the size of kernels is not known; then the verdict is host_bound, which says the same of the thread. A thread that "
        "waits for the GPU by spinning looks busy too, so a nearly full GPU is never called launch-bound."
    ),
    sources=(
        "HTA idle-time analysis: host wait against kernel wait",
        "Trainy: GPU utilization is a misleading metric",
        "gpulse H200 traces `launch` and `lm_tiny_batch`",
    ),
    advice=("cuda_graphs", "larger_batch", "fused_optimizer", "fewer_syncs"),
)
