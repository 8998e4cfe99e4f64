"""small_batch: kernels follow each other without pause but each uses only a part of the chip."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

BUSY = 80.0  # per cent of kernel time
SM = 60.0
FILL = 0.65
PIPES = 25.0  # per cent of any pipe
DRAM = 45.0


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, sm, fill = load.busy, load.mean("sm_active"), load.fill
    if busy is None or busy < BUSY or sm is None or fill is None:
        return None
    tensor, dram = load.mean("tensor_active") or 0.0, load.mean("dram_active") or 0.0
    fp32 = load.mean("fp32_active") or 0.0
    if sm >= SM or fill >= FILL or max(tensor, fp32) >= PIPES or dram >= DRAM:
        return None
    sure: Confidence = "high" if fill < 0.5 else "medium"
    evidence = [
        above("busy", busy, BUSY),
        below("fill", 100 * fill, 100 * FILL),
        below("sm_active", sm, SM),
        below("tensor_active", tensor, PIPES),
        below("dram_active", dram, DRAM),
        seen("memory_percent", load.memory_share),
    ]
    return found(load, "small_batch", sure, evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "small_batch",
    "device",
    "phase",
    _judge,
    needs=("graphics_active", "sm_active", "tensor_active", "dram_active"),
    signature=(
        f"Kernels run {BUSY:.0f} % of the time or more but fill less than {100 * FILL:.0f} % of the chip, "
        f"with every pipe below {PIPES:.0f} % and DRAM "
        f"below {DRAM:.0f} %."
    ),
    blind="Whether the batch can be made larger is a property of the program. Needs GPM; without it nothing is said.",
    sources=(
        "ICSE 2024 study: improper batch size, 25.6 % of the issues",
        "DCGM guide: SM activity below 50 % is likely ineffective",
    ),
    advice=("larger_batch", "pack_sequences", "several_processes"),
)
