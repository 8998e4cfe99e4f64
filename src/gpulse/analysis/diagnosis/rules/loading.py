"""loading: weights are read and copied to the GPU; nothing is computed yet."""

from __future__ import annotations

from itertools import pairwise

from ..rule import DiagnosisRule, Span, Verdict, above, seen

GROWN = 1 << 30  # bytes by which memory must grow
STEPS = 3  # samples in which it does
SM = 5.0  # per cent below which nothing is computed
_YOUNG = 600.0  # seconds of running time


def _judge(span: Span) -> Verdict | None:
    age = span.process_age
    used = span.known("memory_used")
    if len(used) < 3 or (span.mean("sm_active") or 0.0) >= SM or (age is not None and age >= _YOUNG):
        return None
    grown = used[-1] - used[0]
    steps = sum(later > earlier + (16 << 20) for earlier, later in pairwise(used))
    received, reads = span.mean("pcie_rx") or 0.0, span.process_mean("tree_read") or 0.0
    if grown < GROWN or steps < STEPS or received * span.seconds < 0.3 * grown:
        return None
    evidence = [
        above("memory_growth", grown / span.seconds, GROWN / span.seconds),
        seen("pcie_rx", received),
        seen("read_rate", reads) if reads > 1e6 else None,
        seen("sm_active", span.mean("sm_active")),
    ]
    return RULE.found(span, "medium", evidence, advice=(), rate=received, grown=grown)


RULE = DiagnosisRule(
    "loading", "rest", "phase", _judge, part="starting", needs=("memory_used", "pcie_rx"),
    signature=(
        f"The memory of a program grows by {GROWN >> 30} GiB or more in several steps, the bytes arrive over PCIe, and "
        f"the SMs stay below {SM:g} %."
    ),
    blind="A program that fills a cache on the GPU at its start looks the same.",
    sources=("gpulse H200 recordings of model loading",),
)  # fmt: skip
