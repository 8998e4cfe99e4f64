"""serving_idle: a model server holds its memory and has no traffic."""

from __future__ import annotations

from ...readings import IDLE_AFTER, activity
from ..rule import DiagnosisRule, Span, Verdict, above, seen, served


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    if said is None or activity(said.last) != "idle" or span.worked:
        return None
    quiet = said.last.idle_time or 0.0
    evidence = [
        above("idle_time", quiet, IDLE_AFTER),
        seen("memory_used", span.high("memory_used")),
        seen("power_draw", span.mean("power_draw")),
    ]
    return RULE.found(
        span, "high", evidence, processes=span.own, quiet=quiet, model=said.last.model or said.last.server or ""
    )


RULE = DiagnosisRule(
    "serving_idle", "rest", "window", _judge, needs=("serving",), advice=("share_gpu", "smaller_gpu"),
    signature=(
        "A model server has no running and no waiting requests, and none of its counters has grown for "
        f"{IDLE_AFTER:.0f} s; no kernel ran in the window."
    ),
    blind="Counts from the time at which gpulse first asked the server.",
    sources=("gpulse: by the server's own counters, not by utilization",),
)  # fmt: skip
