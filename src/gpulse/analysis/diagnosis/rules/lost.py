"""lost: the GPU fell off the bus."""

from __future__ import annotations

from ..outage import outage_of
from ..rule import DiagnosisRule, Span, Verdict, seen


def _judge(span: Span) -> Verdict | None:
    outage, code = outage_of(span.gpu, "lost"), span.gpu.last("xid_last")
    if outage is None:
        return None
    evidence = [seen("state_lost", outage.seconds), seen("xid_last", code)]
    return RULE.found(span, "high", evidence, start_time=outage.start, end_time=outage.end, xid=code)


RULE = DiagnosisRule(
    "lost", "fault", "window", _judge, needs=("state",), advice=("gpu_lost", "kernel_log"),
    signature="The driver says at any sample that the GPU is lost.",
    blind="A GPU that was lost before gpulse started and that the driver no longer lists is not seen.",
    sources=("NVML error codes", "NVIDIA XID catalog: 79"),
)  # fmt: skip
