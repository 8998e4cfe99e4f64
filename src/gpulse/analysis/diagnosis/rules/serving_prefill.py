"""serving_prefill: a model server spends its time on prompts."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, facts, seen, served

PROMPT_SHARE = 8.0  # prompt tokens per generated token
TENSOR = 40.0  # per cent


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    tensor = span.mean("tensor_active")
    if said is None or tensor is None or tensor < TENSOR:
        return None
    prompts, tokens = said.mean("prompt_rate"), said.mean("generation_rate")
    if prompts is None or tokens is None or prompts < PROMPT_SHARE * tokens or prompts <= 0:
        return None
    evidence = [
        above("tensor_active", tensor, TENSOR),
        seen("prompt_rate", prompts),
        seen("generation_rate", tokens),
        *facts(said, "prefix_hits", "first_token_p95"),
    ]
    return RULE.found(span, "high", evidence)


RULE = DiagnosisRule(
    "serving_prefill", "device", "phase", _judge, needs=("serving", "tensor_active"),
    advice=("prefix_cache", "chunked_prefill", "split_prefill"),
    signature=(
        f"A model server processes at least {PROMPT_SHARE:.0f} prompt tokens for each one it generates, with the tensor "
        f"cores busy {TENSOR:.0f} % or more of the time."
    ),
    blind="Prompts found in the prefix cache count as processed in some servers.",
    sources=("Sarathi-Serve and DistServe (OSDI 2024): prefill and decode compete for the same GPU",),
)  # fmt: skip
