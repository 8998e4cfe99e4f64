"""memory_bandwidth: the GPU's memory is the limit."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..load import Load
    from ..rule import Case

BUSY = 60.0
DRAM = 45.0  # per cent; about 80 to 90 is the most
SURE = 60.0
TENSOR = 25.0
UTILIZATION = 60.0  # of memory, without GPM


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy = load.busy
    if busy is None or busy < BUSY:
        return None
    dram = load.mean("dram_active")
    if dram is None or not load.detailed:
        return _without_counters(load)
    tensor, fp32 = load.mean("tensor_active") or 0.0, load.mean("fp32_active") or 0.0
    fp64 = load.mean("fp64_active") or 0.0
    if dram < DRAM or dram < max(tensor, fp64) + 10.0 or (dram < SURE and (tensor >= TENSOR or fp32 >= 30.0)):
        return None
    sure: Confidence = "high" if dram >= SURE else "medium"
    evidence = [
        above("dram_active", dram, SURE if dram >= SURE else DRAM),
        below("tensor_active", tensor, max(TENSOR, dram - 10.0)),
        seen("sm_active", load.mean("sm_active")),
        seen("power_draw", load.mean("power_draw")),
    ]
    return found(load, "memory_bandwidth", sure, evidence, advice=RULE.advice)


def _without_counters(load: Load) -> Verdict | None:
    use, power = load.mean("memory_utilization"), load.power_share
    if use is None or use < UTILIZATION or (power is not None and power >= 0.85):
        return None
    evidence = [
        above("memory_utilization", use, UTILIZATION),
        below("power_share", None if power is None else 100 * power, 85.0),
        above("utilization", load.mean("utilization"), BUSY),
    ]
    return found(
        load, "memory_bandwidth", "medium" if use >= 85 else "low", evidence, advice=RULE.advice, guess="power"
    )


RULE = DiagnosisRule(
    "memory_bandwidth",
    "device",
    "phase",
    _judge,
    needs=("dram_active", "tensor_active"),
    signature=(
        f"DRAM activity is {DRAM:.0f} % or more (sure from {SURE:.0f} %) and exceeds the activity of "
        f"the tensor and FP64 pipes. Without GPM: memory "
        f"utilization of {UTILIZATION:.0f} % with power below 85 % of the limit, as a guess."
    ),
    blind="SM activity says nothing here: warps that wait for memory count as active.",
    sources=(
        "DCGM guide: DRAM activity, practical maximum about 80 %",
        "KempnerPulse memory-bound class",
        "gpulse H200 trace `elementwise`",
    ),
    advice=("fuse", "attention", "half_precision", "decode_batch"),
)
