"""host_bound: one thread of the program runs while the GPU waits for it."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, below, found, lower, seen, sure, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import WAIT, Case, told

_YOUNG = 15.0  # seconds of running time in which pauses may still be the start of a process
_STARTED = 120.0  # seconds after which a process that has not used the GPU is no longer starting


def _judge(case: Case) -> Verdict | None:
    load = case.load
    age = load.process_mean("running_time") or _STARTED
    confidence = sure(load, "thread") if case.worked else "low"
    if not load.states and (load.cpu_main or 0.0) < 0.8:
        confidence = "low"  # it runs for a part of the time only, and which part is not known
    if confidence == "high" and (age < _YOUNG or (load.fill is not None and load.fill < 0.7 and load.idle_share < 0.5)):
        confidence = lower(confidence)  # the window may hold some of its start, or the thread launches small kernels
    evidence = [
        told("thread_share", load.parts.get("thread", 0.0)),
        seen("cpu_main", load.cpu_main),
        seen("thread_running", 100 * load.states["running"]) if "running" in load.states else None,
        seen("busy", load.busy),
        seen("idle_share", 100 * load.idle_share),
        seen("workers", load.workers) if load.workers >= 1 else None,
        below("host_cpu", load.host("cpu_percent"), 95.0) if (load.host("cpu_percent") or 100.0) < 95.0 else None,
    ]
    return found(load, "host_bound", confidence, evidence, advice=RULE.advice, worked=int(case.worked))


RULE = DiagnosisRule(
    "host_bound",
    "feeding",
    "phase",
    _judge,
    part="thread",
    needs=("cpu_percent", "tree_cpu_percent", "utilization"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while the thread that feeds it runs, and that is more than it "
        "waits for anything else. Large kernels with pauses, not small kernels without."
    ),
    blind=(
        "What the thread does is not visible from outside: decoding, tokenizing, metrics, logging, a simulator or any other Python "
        "code. Pauses shorter than 0.2 s are inferred from how well kernels fill the chip."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls",
        "gpulse H200 traces `input_cpu_0`, `tokenize_main`",
    ),
    advice=("profile_host", "loader_workers", "tokenize_ahead"),
)
