"""serving_preemptions: a model server takes the cache of running requests away again and again."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, facts, served

STORM = 10.0  # preemptions per 100 finished requests
_RATE = 0.1  # preemptions per second below which nobody notices


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    rate = None if said is None else said.mean("preemption_rate")
    if said is None or rate is None or rate < _RATE:
        return None
    finished = said.mean("request_rate")
    per_request = 100.0 * rate / finished if finished else None
    if per_request is not None and per_request < STORM:
        return None
    evidence = [
        above("preemption_rate", rate, _RATE),
        above("preempted_share", per_request, STORM),
        *facts(said, "kv_cache", "running"),
    ]
    return RULE.found(span, "high", evidence)


RULE = DiagnosisRule(
    "serving_preemptions", "limit", "window", _judge, needs=("serving",),
    advice=("fewer_running", "more_cache", "more_replicas"),
    signature=f"A model server preempted {_RATE:g} requests per second or more, and {STORM:.0f} or more for 100 that finished.",
    blind="Servers that do not count preemptions.",
    sources=("vLLM: optimization guide, preemption",),
)  # fmt: skip
