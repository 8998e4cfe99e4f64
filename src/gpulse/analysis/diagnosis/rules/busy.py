"""busy: kernels run all the time, and nothing says how well they use the chip."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

UTILIZATION = 80.0  # per cent


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, power = load.busy, load.power_share
    if load.detailed or busy is None or busy < UTILIZATION:
        return None
    evidence = [
        above("utilization", busy, UTILIZATION),
        seen("power_share", None if power is None else 100 * power),
        seen("memory_utilization", load.mean("memory_utilization")),
        seen("cpu_main", load.cpu_main),
    ]
    return found(load, "busy", "medium", evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "busy",
    "device",
    "phase",
    _judge,
    needs=("utilization",),
    signature=f"Kernels run {UTILIZATION:.0f} % of the time or more on a GPU without activity counters.",
    blind="Whether tensor cores, FP32 pipes or memory are the limit, and whether kernels fill the chip, needs GPM (Hopper and later).",
    sources=("Trainy: GPU utilization is a misleading metric", "gpulse H200 traces with their counters taken out"),
    advice=("check_tensor", "profile_kernel"),
)
