"""underused: a model server without enough requests."""

from __future__ import annotations

from ....model.serving import serves
from ..rule import WAIT, DiagnosisRule, Span, Verdict, facts, seen, told


def _judge(span: Span) -> Verdict | None:
    if span.main is None or not serves(span.main.process):
        return None
    evidence = [
        told("outside_share", span.parts.get("outside", 0.0)),
        *facts(span, "busy", "cpu_tree"),
        seen("memory_percent", span.memory_share),
    ]
    return RULE.found(span, "high" if span.seconds >= 30 else "medium", evidence, kind="server")


RULE = DiagnosisRule(
    "underused", "feeding", "phase", _judge, part="outside", needs=("utilization", "tree_cpu_percent", "command"),
    advice=("smaller_gpu", "share_gpu", "batch_requests"),
    signature=(
        f"A model server, known by its command line, waits for something outside for {100 * WAIT:.0f} % of the time or "
        "more, and for nothing else that long."
    ),
    blind="A server is recognized only by its command line; others are told that they wait.",
    sources=("Princeton jobstats: mean utilization below 15 %",),
)  # fmt: skip
