"""launch_bound: kernels are so small that launching them from one CPU thread takes longer than running them."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen
from .input_bound_single_core import CPU, FILL, GAPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

BUSY = 85.0  # per cent of kernel time
SM = 40.0  # per cent


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, cpu, fill, sm = load.busy, load.cpu_main, load.fill, load.mean("sm_active")
    if busy is None or busy >= BUSY or busy < 1.0 or cpu is None or cpu < CPU or load.idle_share >= GAPS:
        return None
    if fill is not None and (fill >= FILL or (sm or 0.0) >= SM):
        return None
    sure: Confidence = "low" if fill is None else "high" if fill < 0.4 and busy < 70 else "medium"
    evidence = [
        above("cpu_main", cpu, CPU),
        below("fill", None if fill is None else 100 * fill, 100 * FILL),
        below("busy", busy, BUSY),
        below("sm_active", sm, SM),
        below("idle_share", 100 * load.idle_share, 100 * GAPS),
        seen("utilization", load.mean("utilization")),
    ]
    return found(load, "launch_bound", sure, evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "launch_bound",
    "feeding",
    "phase",
    _judge,
    needs=("cpu_percent", "utilization"),
    signature=(
        f"The process keeps {CPU:g} cores or more busy, kernels run less than {BUSY:.0f} % of the time "
        f"without pauses that a sample could see, and "
        f"those that run fill less than {100 * FILL:.0f} % of the chip."
    ),
    blind=(
        "Without GPM the size of kernels is not known and the verdict is a guess. A thread that waits for the GPU by spinning looks busy "
        "too, so a nearly full GPU is never called launch-bound."
    ),
    sources=(
        "HTA idle-time analysis: host wait against kernel wait",
        "Trainy: GPU utilization is a misleading metric",
        "gpulse H200 traces `launch` and `lm_tiny_batch`",
    ),
    advice=("cuda_graphs", "larger_batch", "fused_optimizer", "fewer_syncs"),
)
