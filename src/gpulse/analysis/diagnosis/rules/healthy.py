"""healthy: the GPU computes as fast as its tensor or FP64 pipes, or its power, allow."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, beside, percent, seen

SM = 65.0
TENSOR = 22.0
SURE = 40.0
FP64 = 30.0
POWER = 0.80


def _judge(span: Span) -> Verdict | None:
    if not span.detailed:
        return None
    sm, tensor = span.mean("sm_active") or 0.0, span.mean("tensor_active") or 0.0
    fp64, power = span.mean("fp64_active") or 0.0, span.power_share
    dram = span.mean("dram_active") or 0.0
    if sm < SM or (tensor < TENSOR and fp64 < FP64) or dram >= max(tensor, fp64) + 25.0:
        return None
    evidence = [
        above("tensor_active", tensor, TENSOR) if tensor >= TENSOR else above("fp64_active", fp64, FP64),
        above("sm_active", sm, SM),
        beside("power_share", percent(power), 100 * POWER),
        seen("dram_active", dram),
    ]
    capped = power is not None and power >= 0.9
    return RULE.found(
        span,
        "high" if max(tensor, fp64) >= SURE and sm >= 75 else "medium",
        evidence,
        advice=(),
        limit="power" if capped else "compute",
    )


RULE = DiagnosisRule(
    "healthy", "device", "phase", _judge, needs=("sm_active", "tensor_active"),
    signature=(
        f"SM activity is {SM:.0f} % or more with tensor cores at {TENSOR:.0f} % or more (sure from {SURE:.0f} %) or "
        f"FP64 pipes at {FP64:.0f} % or more, and DRAM does not lead by 25 points."
    ),
    blind="Says that the hardware is busy with useful pipes, not that the program is: recomputation and padding count as work.",
    sources=(
        "DCGM guide: SM activity 80 % is necessary, not sufficient",
        "Llama 3.1 and Modal reports: 20 to 43 % model FLOP utilization is good",
        "gpulse H200 traces `matmul_bf16` and `lm_train`",
    ),
)  # fmt: skip
