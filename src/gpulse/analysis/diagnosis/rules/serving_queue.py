"""serving_queue: requests wait although the SMs and the cache of a model server have room."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen, served
from .serving_cache_full import FULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

WAITING = 2.0  # requests
IDLE_SMS = 40.0  # per cent
_MOSTLY = 0.5  # of the time


def _judge(case: Case) -> Verdict | None:
    load = case.load
    said = served(load)
    if said is None or said.share("waiting", WAITING) < _MOSTLY or (said.mean("kv_cache") or 0.0) >= FULL:
        return None
    active = load.mean("sm_active")
    used = load.mean("utilization") if active is None else active
    if used is None or used >= IDLE_SMS:
        return None
    evidence = [
        above("waiting", said.mean("waiting"), WAITING),
        below("utilization" if active is None else "sm_active", used, IDLE_SMS),
        seen("running", said.mean("running")),
        seen("kv_cache", said.mean("kv_cache")),
        seen("cpu_tree", load.cpu_tree),
    ]
    return found(load, "serving_queue", "medium" if active is None else "high", evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "serving_queue",
    "limit",
    "window",
    _judge,
    needs=("serving", "sm_active"),
    signature=(
        f"At least {WAITING:.0f} requests waited for half of the time or more, while the SMs were less than {IDLE_SMS:.0f} % active and "
        "the key-value cache had room."
    ),
    blind="Does not say which part of the server is slow: tokenizer, scheduler or the limit of running requests.",
    sources=("vLLM issues about CPU-bound scheduling", "gpulse: SM activity beside the server's own queue"),
    advice=("server_cpus", "raise_running", "server_processes"),
)
