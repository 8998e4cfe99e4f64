"""fp32_no_tensor: the GPU computes in FP32 without its tensor cores."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

SM = 50.0
FP32 = 20.0
SURE = 35.0
TENSOR = 5.0


def _judge(span: Span) -> Verdict | None:
    sm, fp32, tensor = span.mean("sm_active"), span.mean("fp32_active"), span.mean("tensor_active")
    if sm is None or fp32 is None or tensor is None or sm < SM or fp32 < FP32 or tensor >= TENSOR:
        return None
    if (span.mean("dram_active") or 0.0) >= fp32 + 20.0 or (span.mean("fp64_active") or 0.0) >= fp32:
        return None
    evidence = [
        above("fp32_active", fp32, FP32),
        below("tensor_active", tensor, TENSOR),
        above("sm_active", sm, SM),
        seen("power_draw", span.mean("power_draw")),
    ]
    return RULE.found(span, "high" if fp32 >= SURE else "medium", evidence)


RULE = DiagnosisRule(
    "fp32_no_tensor", "device", "phase", _judge, needs=("sm_active", "fp32_active", "tensor_active"),
    advice=("tf32", "bf16", "tensor_shapes"),
    signature=f"SM activity is {SM:.0f} % or more, FP32 pipes {FP32:.0f} % or more, tensor cores below {TENSOR:.0f} %.",
    blind="Work that has no matrix products (simulations, many elementwise operations in registers) cannot use tensor cores.",
    sources=("PyTorch profiler: tensor core eligibility", "gpulse H200 trace `matmul_fp32`"),
)  # fmt: skip
