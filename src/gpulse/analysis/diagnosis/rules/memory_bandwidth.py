"""memory_bandwidth: the GPU's memory is the limit."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, below, facts, percent

BUSY = 60.0
DRAM = 45.0  # per cent; about 80 to 90 is the most
SURE = 60.0
TENSOR = 25.0
UTILIZATION = 60.0  # of memory, without GPM


def _judge(span: Span) -> Verdict | None:
    busy = span.busy
    if busy is None or busy < BUSY:
        return None
    dram = span.mean("dram_active")
    if dram is None or not span.detailed:
        return _without_counters(span)
    tensor, fp32 = span.mean("tensor_active") or 0.0, span.mean("fp32_active") or 0.0
    fp64 = span.mean("fp64_active") or 0.0
    if dram < DRAM or dram < max(tensor, fp64) + 10.0 or (dram < SURE and (tensor >= TENSOR or fp32 >= 30.0)):
        return None
    evidence = [
        above("dram_active", dram, SURE if dram >= SURE else DRAM),
        below("tensor_active", tensor, max(TENSOR, dram - 10.0)),
        *facts(span, "sm_active", "power_draw"),
    ]
    return RULE.found(span, "high" if dram >= SURE else "medium", evidence)


def _without_counters(span: Span) -> Verdict | None:
    use, power = span.mean("memory_utilization"), span.power_share
    if use is None or use < UTILIZATION or (power is not None and power >= 0.85):
        return None
    evidence = [
        above("memory_utilization", use, UTILIZATION),
        below("power_share", percent(power), 85.0),
        above("utilization", span.mean("utilization"), BUSY),
    ]
    return RULE.found(span, "medium" if use >= 85 else "low", evidence, guess="power")


RULE = DiagnosisRule(
    "memory_bandwidth", "device", "phase", _judge, needs=("dram_active", "tensor_active"),
    advice=("fuse", "attention", "half_precision", "decode_batch"),
    signature=(
        f"DRAM activity is {DRAM:.0f} % or more (sure from {SURE:.0f} %) and exceeds the activity of the tensor and "
        f"FP64 pipes. Without GPM: memory utilization of {UTILIZATION:.0f} % with power below 85 % of the limit, as a "
        "guess."
    ),
    blind="SM activity says nothing here: warps that wait for memory count as active.",
    sources=(
        "DCGM guide: DRAM activity, practical maximum about 80 %",
        "KempnerPulse memory-bound class",
        "gpulse H200 trace `elementwise`",
    ),
)  # fmt: skip
