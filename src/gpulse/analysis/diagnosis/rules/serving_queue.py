"""serving_queue: requests wait although the SMs and the cache of a model server have room."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, below, facts, seen, served
from .serving_cache_full import FULL

WAITING = 2.0  # requests
IDLE_SMS = 40.0  # per cent
_MOSTLY = 0.5  # of the time


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    if said is None or said.share("waiting", WAITING) < _MOSTLY or (said.mean("kv_cache") or 0.0) >= FULL:
        return None
    active = span.mean("sm_active")
    used = span.mean("utilization") if active is None else active
    if used is None or used >= IDLE_SMS:
        return None
    evidence = [
        above("waiting", said.mean("waiting"), WAITING),
        below("utilization" if active is None else "sm_active", used, IDLE_SMS),
        *facts(said, "running", "kv_cache"),
        seen("cpu_tree", span.cpu_tree),
    ]
    return RULE.found(span, "medium" if active is None else "high", evidence)


RULE = DiagnosisRule(
    "serving_queue", "limit", "window", _judge, needs=("serving", "sm_active"),
    advice=("server_cpus", "raise_running", "server_processes"),
    signature=(
        f"At least {WAITING:.0f} requests waited for half of the time or more, while the SMs were less than "
        f"{IDLE_SMS:.0f} % active and the key-value cache had room."
    ),
    blind="Does not say which part of the server is slow: tokenizer, scheduler or the limit of running requests.",
    sources=("vLLM issues about CPU-bound scheduling", "gpulse: SM activity beside the server's own queue"),
)  # fmt: skip
