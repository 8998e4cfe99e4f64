"""host_bound: one thread of the program runs while the GPU waits for it."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, Span, Verdict, above, below, lower, seen, sure, told

_YOUNG = 15.0  # seconds of running time in which pauses may still be the start of a process
_READY, _WITHOUT = 0.6, 0.3  # of the time that a thread short of CPU is ready to run, and is so without a CPU
_STARTED = 120.0  # seconds after which a process that has not used the GPU is no longer starting


def _judge(span: Span) -> Verdict | None:
    age = span.process_mean("running_time") or _STARTED
    confidence = sure(span, "thread") if span.worked else "low"
    if not span.states and (span.cpu_main or 0.0) < 0.8:
        confidence = "low"  # it runs for a part of the time only, and which part is not known
    if confidence == "high" and (age < _YOUNG or (span.fill is not None and span.fill < 0.7 and span.idle_share < 0.5)):
        confidence = lower(confidence)  # the window may hold some of its start, or the thread launches small kernels
    ready, host = span.states.get("running", 0.0), span.host("cpu_percent")
    short = span.cpu_main is not None and ready >= _READY and ready - span.cpu_main >= _WITHOUT
    evidence = [
        told("thread_share", span.parts.get("thread", 0.0)),
        seen("cpu_main", span.cpu_main),
        seen("thread_running", 100 * ready) if "running" in span.states else None,
        seen("busy", span.busy),
        seen("idle_share", 100 * span.idle_share),
        seen("workers", span.workers) if span.workers >= 1 else None,
        below("host_cpu", host, 95.0) if (host or 100.0) < 95.0 and not short else None,
        above("host_cpu", host, 95.0) if short and (host or 0.0) >= 95.0 else None,
    ]
    advice = ("more_cores", "fewer_threads", "profile_host") if short else RULE.advice[:3]
    return RULE.found(span, confidence, evidence, advice=advice, worked=int(span.worked), short=int(short))


RULE = DiagnosisRule(
    "host_bound", "feeding", "phase", _judge, part="thread", needs=("cpu_percent", "tree_cpu_percent", "utilization"),
    advice=("profile_host", "loader_workers", "tokenize_ahead", "more_cores", "fewer_threads"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while the thread that feeds it runs, and that is "
        "more than it waits for anything else. Large kernels with pauses, not small kernels without. A thread that is "
        f"ready to run for {100 * _READY:.0f} % of the time but gets much less CPU time is short of CPU."
    ),
    blind=(
        "What the thread does is not visible from outside: decoding, tokenizing, metrics, logging, a simulator or any "
        "other Python code. Pauses shorter than 0.2 s are inferred from how well kernels fill the chip."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls",
        "gpulse H200 traces `input_cpu_0`, `tokenize_main`",
    ),
)  # fmt: skip
