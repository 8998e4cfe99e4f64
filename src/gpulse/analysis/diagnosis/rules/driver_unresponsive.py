"""driver_unresponsive: the driver did not answer for this GPU in time."""

from __future__ import annotations

from ..rule import DiagnosisRule, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case


def _judge(case: Case) -> Verdict | None:
    gpu = case.gpu
    silent = [at for at, row in enumerate(gpu.rows) if row.state == "timeout"]
    if not silent:
        return None
    seconds = sum(gpu.weights[at] for at in silent)
    evidence = [seen("state_timeout", seconds)]
    now = gpu.rows[-1].state == "timeout"
    return found(
        case.load, "driver_unresponsive", "high", evidence, advice=RULE.advice, kind="now" if now else "recovered"
    )


RULE = DiagnosisRule(
    "driver_unresponsive",
    "fault",
    "window",
    _judge,
    needs=("state",),
    signature="A driver call about this GPU did not return within its deadline at one or more samples.",
    blind="Says that the driver hangs, not why: a failing GPU, a stuck process and an overloaded machine look the same.",
    sources=("gpulse's own deadline per driver call",),
    advice=("driver_hang", "kernel_log"),
)
