"""xid: the driver reported an error code."""

from __future__ import annotations

from ....model.condition import xid_of
from ..rule import DiagnosisRule, Span, Verdict, seen


def _judge(span: Span) -> Verdict | None:
    known = dict.fromkeys(int(value) for value in span.gpu.columns["xid_last"] if value is not None)
    # the last code stays for ever: one that ended a program before the window is of the past
    codes = [code for code in known if code in span.gpu.new_xids or xid_of(code).severity == "critical"]
    if not codes or any(row.state == "lost" for row in span.gpu.rows):
        return None
    worst = min(codes, key=lambda code: (xid_of(code).severity != "critical", -codes.index(code)))
    serious = xid_of(worst).severity == "critical"
    return RULE.found(
        span,
        "high",
        [seen("xid_last", tuple(float(code) for code in codes))],
        advice=RULE.advice if serious else ("xid",),
        share=1.0 if serious else 0.0,  # an error of a program does not limit the GPU
        xid=float(worst),
    )


RULE = DiagnosisRule(
    "xid", "fault", "window", _judge, needs=("xid_last",), advice=("xid", "kernel_log"),
    signature=(
        "The driver reported an XID. Codes that end a program and leave the GPU as good as before are told beside the verdict, while the "
        "window holds the time at which they came."
    ),
    blind="An XID that was reported before gpulse started is not seen; the kernel log has it.",
    sources=("NVIDIA XID catalog (immediate action per code)",),
)  # fmt: skip
