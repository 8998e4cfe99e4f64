"""serving_decode: generating tokens is limited by memory bandwidth, and a larger batch would use it better."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen, served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

DRAM = 50.0  # per cent
TENSOR = 50.0  # per cent of tensor activity from which the batch is large enough


def _judge(case: Case) -> Verdict | None:
    load = case.load
    said = served(load)
    dram, tensor = load.mean("dram_active"), load.mean("tensor_active")
    if said is None or dram is None or tensor is None or dram < DRAM or tensor >= TENSOR or dram < tensor:
        return None
    running = said.mean("running")
    if not running or not said.mean("generation_rate"):
        return None
    evidence = [
        above("dram_active", dram, DRAM),
        below("tensor_active", tensor, TENSOR),
        seen("running", running),
        seen("generation_rate", said.mean("generation_rate")),
        seen("kv_cache", said.mean("kv_cache")),
    ]
    room = TENSOR / max(tensor, 1.0)
    return found(load, "serving_decode", "high", evidence, advice=RULE.advice, running=running, room=round(room, 1))


RULE = DiagnosisRule(
    "serving_decode",
    "device",
    "phase",
    _judge,
    needs=("serving", "dram_active", "tensor_active"),
    signature=(
        f"A model server generates tokens while DRAM is busy {DRAM:.0f} % or more of the time and the tensor cores less than "
        f"{TENSOR:.0f} % and less than DRAM."
    ),
    blind="How far the batch can grow is an estimate by the tensor cores; the cache may be full before.",
    sources=("Roofline of batched decoding: each step reads all weights once, whatever the batch",),
    advice=("decode_batch", "more_cache", "speculative"),
)
