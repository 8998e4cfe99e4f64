"""serving_prefill: a model server spends its time on prompts."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, found, seen, served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

PROMPT_SHARE = 8.0  # prompt tokens per generated token
TENSOR = 40.0  # per cent


def _judge(case: Case) -> Verdict | None:
    load = case.load
    said = served(load)
    tensor = load.mean("tensor_active")
    if said is None or tensor is None or tensor < TENSOR:
        return None
    prompts, tokens = said.mean("prompt_rate"), said.mean("generation_rate")
    if prompts is None or tokens is None or prompts < PROMPT_SHARE * tokens or prompts <= 0:
        return None
    evidence = [
        above("tensor_active", tensor, TENSOR),
        seen("prompt_rate", prompts),
        seen("generation_rate", tokens),
        seen("prefix_hits", said.mean("prefix_hits")),
        seen("first_token_p95", said.mean("first_token_p95")),
    ]
    return found(load, "serving_prefill", "high", evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "serving_prefill",
    "device",
    "phase",
    _judge,
    needs=("serving", "tensor_active"),
    signature=(
        f"A model server processes at least {PROMPT_SHARE:.0f} prompt tokens for each one it generates, with the tensor cores busy "
        f"{TENSOR:.0f} % or more of the time."
    ),
    blind="Prompts found in the prefix cache count as processed in some servers.",
    sources=("Sarathi-Serve and DistServe (OSDI 2024): prefill and decode compete for the same GPU",),
    advice=("prefix_cache", "chunked_prefill", "split_prefill"),
)
