"""lost: the GPU fell off the bus."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, seen


def _judge(span: Span) -> Verdict | None:
    gpu = span.gpu
    lost = [at for at, row in enumerate(gpu.rows) if row.state == "lost"]
    if not lost:
        return None
    back = gpu.rows[-1].state != "lost"
    code = gpu.last("xid_last")
    evidence = [seen("state_lost", sum(gpu.weights[at] for at in lost)), seen("xid_last", code)]
    return RULE.found(
        span,
        "high",
        evidence,
        start_time=gpu.times[lost[0]],
        end_time=gpu.times[lost[-1] + 1] if back else None,
        xid=code,
    )


RULE = DiagnosisRule(
    "lost", "fault", "window", _judge, needs=("state",), advice=("gpu_lost", "kernel_log"),
    signature="The driver says at any sample that the GPU is lost.",
    blind="A GPU that was lost before gpulse started and that the driver no longer lists is not seen.",
    sources=("NVML error codes", "NVIDIA XID catalog: 79"),
)  # fmt: skip
