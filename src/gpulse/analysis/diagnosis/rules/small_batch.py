"""small_batch: kernels follow each other without pause but each uses only a part of the chip."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

BUSY = 80.0  # per cent of kernel time
SM = 60.0
FILL = 0.65
PIPES = 25.0  # per cent of any pipe
DRAM = 45.0


def _judge(span: Span) -> Verdict | None:
    busy, sm, fill = span.busy, span.mean("sm_active"), span.fill
    if busy is None or busy < BUSY or sm is None or fill is None:
        return None
    tensor, dram = span.mean("tensor_active") or 0.0, span.mean("dram_active") or 0.0
    fp32 = span.mean("fp32_active") or 0.0
    if sm >= SM or fill >= FILL or max(tensor, fp32) >= PIPES or dram >= DRAM:
        return None
    evidence = [
        above("busy", busy, BUSY),
        below("fill", 100 * fill, 100 * FILL),
        below("sm_active", sm, SM),
        below("tensor_active", tensor, PIPES),
        below("dram_active", dram, DRAM),
        seen("memory_percent", span.memory_share),
    ]
    return RULE.found(span, "high" if fill < 0.5 else "medium", evidence)


RULE = DiagnosisRule(
    "small_batch", "device", "phase", _judge, needs=("graphics_active", "sm_active", "tensor_active", "dram_active"),
    advice=("larger_batch", "pack_sequences", "several_processes"),
    signature=(
        f"Kernels run {BUSY:.0f} % of the time or more but fill less than {100 * FILL:.0f} % of the chip, with every "
        f"pipe below {PIPES:.0f} % and DRAM below {DRAM:.0f} %."
    ),
    blind="Whether the batch can be made larger is a property of the program. Needs GPM; without it nothing is said.",
    sources=(
        "ICSE 2024 study: improper batch size, 25.6 % of the issues",
        "DCGM guide: SM activity below 50 % is likely ineffective",
    ),
)  # fmt: skip
