"""host_bound: one thread of the program runs while the GPU waits for it."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, above, below, found, lower, seen, sure, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

_YOUNG = 15.0  # seconds of running time in which pauses may still be the start of a process
_READY, _WITHOUT = (
    0.6,
    0.3,
)  # of the time that a thread is ready to run, and that it is so without a CPU, when short of CPU
_STARTED = 120.0  # seconds after which a process that has not used the GPU is no longer starting


def _judge(case: Case) -> Verdict | None:
    load = case.load
    age = load.process_mean("running_time") or _STARTED
    confidence = sure(load, "thread") if case.worked else "low"
    if not load.states and (load.cpu_main or 0.0) < 0.8:
        confidence = "low"  # it runs for a part of the time only, and which part is not known
    if confidence == "high" and (age < _YOUNG or (load.fill is not None and load.fill < 0.7 and load.idle_share < 0.5)):
        confidence = lower(confidence)  # the window may hold some of its start, or the thread launches small kernels
    ready, host = load.states.get("running", 0.0), load.host("cpu_percent")
    short = load.cpu_main is not None and ready >= _READY and ready - load.cpu_main >= _WITHOUT
    evidence = [
        told("thread_share", load.parts.get("thread", 0.0)),
        seen("cpu_main", load.cpu_main),
        seen("thread_running", 100 * ready) if "running" in load.states else None,
        seen("busy", load.busy),
        seen("idle_share", 100 * load.idle_share),
        seen("workers", load.workers) if load.workers >= 1 else None,
        below("host_cpu", host, 95.0) if (host or 100.0) < 95.0 and not short else None,
        above("host_cpu", host, 95.0) if short and (host or 0.0) >= 95.0 else None,
    ]
    advice = (
        ("more_cores", "fewer_threads", "profile_host")
        if short
        else ("profile_host", "loader_workers", "tokenize_ahead")
    )
    return found(load, "host_bound", confidence, evidence, advice=advice, worked=int(case.worked), short=int(short))


RULE = DiagnosisRule(
    "host_bound",
    "feeding",
    "phase",
    _judge,
    part="thread",
    needs=("cpu_percent", "tree_cpu_percent", "utilization"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while the thread that feeds it runs, and that is more than it "
        "waits for anything else. Large kernels with pauses, not small kernels without. A thread that is ready to run for "
        f"{100 * _READY:.0f} % of the time but gets much less CPU time is short of CPU."
    ),
    blind=(
        "What the thread does is not visible from outside: decoding, tokenizing, metrics, logging, a simulator or any other Python "
        "code. Pauses shorter than 0.2 s are inferred from how well kernels fill the chip."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls",
        "gpulse H200 traces `input_cpu_0`, `tokenize_main`",
    ),
    advice=("profile_host", "loader_workers", "tokenize_ahead", "more_cores", "fewer_threads"),
)
