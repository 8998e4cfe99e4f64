"""serving_stuck: a model server has requests and makes no tokens."""

from __future__ import annotations

from ...readings import STUCK_AFTER, activity
from ..rule import DiagnosisRule, above, found, seen, served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case


def _judge(case: Case) -> Verdict | None:
    said = served(case.load)
    if said is None or activity(said.last) != "stuck":
        return None
    evidence = [
        above("idle_time", said.last.idle_time, STUCK_AFTER),
        seen("running", said.last.running),
        seen("waiting", said.last.waiting),
    ]
    return found(case.load, "serving_stuck", "high", evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "serving_stuck",
    "fault",
    "window",
    _judge,
    needs=("serving",),
    signature=f"A model server has running or waiting requests, and none of its counters has grown for {STUCK_AFTER:.0f} s.",
    blind="Servers without counters (Ollama). A single prompt that takes longer than that looks the same.",
    sources=("gpulse: by the server's own counters, not by utilization",),
    advice=("server_log", "rank_stacks", "check_peers"),
)
