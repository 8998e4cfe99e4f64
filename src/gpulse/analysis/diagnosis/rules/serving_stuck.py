"""serving_stuck: a model server has requests and makes no tokens."""

from __future__ import annotations

from ...readings import STUCK_AFTER, activity
from ..rule import DiagnosisRule, Span, Verdict, above, seen, served


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    if said is None or activity(said.last) != "stuck":
        return None
    evidence = [
        above("idle_time", said.last.idle_time, STUCK_AFTER),
        seen("running", said.last.running),
        seen("waiting", said.last.waiting),
    ]
    return RULE.found(span, "high", evidence)


RULE = DiagnosisRule(
    "serving_stuck", "fault", "window", _judge, needs=("serving",), advice=("server_log", "rank_stacks", "check_peers"),
    signature=f"A model server has running or waiting requests, and none of its counters has grown for {STUCK_AFTER:.0f} s.",
    blind="Servers without counters (Ollama). A single prompt that takes longer than that looks the same.",
    sources=("gpulse: by the server's own counters, not by utilization",),
)  # fmt: skip
