"""serving_decode: generating tokens is limited by memory bandwidth, and a larger batch would use it better."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, below, facts, seen, served

DRAM = 50.0  # per cent
TENSOR = 50.0  # per cent of tensor activity from which the batch is large enough


def _judge(span: Span) -> Verdict | None:
    said = served(span)
    dram, tensor = span.mean("dram_active"), span.mean("tensor_active")
    if said is None or dram is None or tensor is None or dram < DRAM or tensor >= TENSOR or dram < tensor:
        return None
    running = said.mean("running")
    if not running or not said.mean("generation_rate"):
        return None
    evidence = [
        above("dram_active", dram, DRAM),
        below("tensor_active", tensor, TENSOR),
        seen("running", running),
        *facts(said, "generation_rate", "kv_cache"),
    ]
    room = TENSOR / max(tensor, 1.0)
    return RULE.found(span, "high", evidence, running=running, room=round(room, 1))


RULE = DiagnosisRule(
    "serving_decode", "device", "phase", _judge, needs=("serving", "dram_active", "tensor_active"),
    advice=("decode_batch", "more_cache", "speculative"),
    signature=(
        f"A model server generates tokens while DRAM is busy {DRAM:.0f} % or more of the time and the tensor cores less "
        f"than {TENSOR:.0f} % and less than DRAM."
    ),
    blind="How far the batch can grow is an estimate by the tensor cores; the cache may be full before.",
    sources=("Roofline of batched decoding: each step reads all weights once, whatever the batch",),
)  # fmt: skip
