"""input_bound_single_core: one process prepares the data on its own and the GPU waits for it."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..load import Load
    from ..rule import Case

BUSY = 80.0  # per cent of kernel time
CPU = 0.80  # cores of the main process
GAPS = 0.15  # of the time in samples without any kernel
_BURSTS = 4  # of work that must follow each other before the pattern is sure
_YOUNG = 15.0  # seconds of running time in which pauses may still be the start of a process
_STARTED = 120.0  # seconds after which a process that has not used the GPU is no longer starting
FILL = 0.50  # of the chip at work while a kernel runs


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, cpu = load.busy, load.cpu_main
    if busy is None or busy >= BUSY or cpu is None or cpu < CPU:
        return None
    if not case.worked and (load.process_mean("running_time") or _STARTED) < _STARTED:
        return None  # imports, context, compilation
    gaps, fill = load.idle_share, load.fill
    if gaps < GAPS and not (fill is not None and fill >= FILL):
        return None
    evidence = [
        above("cpu_main", cpu, CPU),
        below("busy", busy, BUSY),
        above("idle_share", 100 * gaps, 100 * GAPS) if gaps >= GAPS else None,
        above("fill", None if fill is None else 100 * fill, 100 * FILL) if fill is not None and fill >= FILL else None,
        seen("host_cpu", load.host("cpu_percent")),
        seen("workers", load.workers),
    ]
    sure: Confidence = _confidence(load, gaps, fill) if case.worked else "low"
    return found(load, "input_bound_single_core", sure, evidence, advice=RULE.advice, worked=int(case.worked))


def _confidence(load: Load, gaps: float, fill: float | None) -> Confidence:
    if gaps >= 0.5 and (load.process_mean("running_time") or _STARTED) < _YOUNG:
        return "low"  # the window may still hold some of its start
    bursts = sum(1 for at in range(load.first + 1, load.end) if load.active[at] and not load.active[at - 1])
    if gaps >= 0.5 and fill is not None and fill >= FILL and load.detailed and bursts >= _BURSTS:
        return "high"
    return "medium" if load.detailed and (gaps >= GAPS or (fill or 0.0) >= 0.75) else "low"


RULE = DiagnosisRule(
    "input_bound_single_core",
    "feeding",
    "phase",
    _judge,
    needs=("cpu_percent", "utilization"),
    signature=(
        f"Kernels run less than {BUSY:.0f} % of the time while the process itself keeps {CPU:g} cores "
        f"or more busy, and either {100 * GAPS:.0f} % of the "
        f"samples show no kernel at all or the kernels that run fill {100 * FILL:.0f} % of the chip: "
        f"large work with pauses, not small kernels."
    ),
    blind=(
        "What the core does is not visible: decoding, tokenizing, collating, logging or any other Python code. Pauses shorter than the "
        "sampling interval are only inferred from how well kernels fill the chip."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls",
        "gpulse H200 trace `input_cpu_0`",
    ),
    advice=("loader_workers", "tokenize_ahead", "profile_host"),
)
