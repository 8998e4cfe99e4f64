"""serving_cache_full: requests wait because the key-value cache of a model server is full."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, facts, served

FULL = 95.0  # per cent of the cache
WAITING = 1.0  # requests
_MOSTLY = 0.5  # of the time


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    if said is None or said.share("kv_cache", FULL) < _MOSTLY or said.share("waiting", WAITING) < _MOSTLY:
        return None
    evidence = [
        above("kv_cache", said.mean("kv_cache"), FULL),
        above("waiting", said.mean("waiting"), WAITING),
        *facts(said, "running", "first_token_p95"),
    ]
    return RULE.found(span, "high", evidence)


RULE = DiagnosisRule(
    "serving_cache_full", "limit", "window", _judge, needs=("serving",),
    advice=("more_cache", "shorter_requests", "more_replicas"),
    signature=f"At least {FULL:.0f} % of the key-value cache was in use and requests waited, each for half of the time or more.",
    blind="Servers that say nothing about their cache.",
    sources=("vLLM: optimization guide, preemption", "SGLang: hyperparameter tuning, token_usage above 0.9"),
)  # fmt: skip
