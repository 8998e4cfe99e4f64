"""serving_preemptions: a model server takes the cache of running requests away again and again."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, found, seen, served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

STORM = 10.0  # preemptions per 100 finished requests
_RATE = 0.1  # preemptions per second below which nobody notices


def _judge(case: Case) -> Verdict | None:
    said = served(case.load)
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
        seen("kv_cache", said.mean("kv_cache")),
        seen("running", said.mean("running")),
    ]
    return found(case.load, "serving_preemptions", "high", evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "serving_preemptions",
    "limit",
    "window",
    _judge,
    needs=("serving",),
    signature=f"A model server preempted {_RATE:g} requests per second or more, and {STORM:.0f} or more for 100 that finished.",
    blind="Servers that do not count preemptions.",
    sources=("vLLM: optimization guide, preemption",),
    advice=("fewer_running", "more_cache", "more_replicas"),
)
