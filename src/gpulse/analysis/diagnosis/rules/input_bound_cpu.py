"""input_bound_cpu: the GPU waits for workers that prepare data on the CPU."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, Span, Verdict, above, seen, sure, told

CPUS = 85.0  # per cent of all CPUs


def _judge(span: Span) -> Verdict | None:
    cores, tree, workers = span.cores, span.cpu_tree, span.workers
    of_all = None if not cores or tree is None else 100 * tree / cores
    host = span.host("cpu_percent")
    advice = RULE.advice[:3]
    if of_all is not None and of_all >= CPUS and (cores or 0.0) > 1:
        kind = "all_cores"
    elif host is not None and host >= 95.0:
        kind = "busy_host"
    else:
        kind = "all_workers" if workers >= 1 else "threads"
        if cores is None or workers + 1 < cores:
            advice = ("more_workers", "gpu_transforms", "precompute")
    per_worker = span.cpu_workers / workers if workers >= 1 else None
    evidence = [
        told("workers_share", span.parts.get("workers", 0.0)),
        above("tree_share", of_all, CPUS) if kind == "all_cores" else None,
        above("host_cpu", host, 95.0) if kind == "busy_host" else None,
        seen("workers", workers) if workers >= 1 else None,
        seen("cpu_per_worker", per_worker),
        seen("cpu_tree", tree),
        seen("busy", span.busy),
    ]
    return RULE.found(
        span, sure(span, "workers"), evidence, advice=advice, kind=kind, workers=workers, cores=cores,
        per_worker=per_worker,
    )  # fmt: skip


RULE = DiagnosisRule(
    "input_bound_cpu", "feeding", "phase", _judge, part="workers",
    needs=("tree_cpu_percent", "children", "utilization"),
    advice=("gpu_transforms", "precompute", "more_cores", "more_workers"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while the thread that feeds it waits and its workers "
        "run, and that is more than it waits for anything else."
    ),
    blind=(
        "What the workers compute is not visible; it is usually decoding and augmentation. A program throttled by the "
        "CPU quota of its container shows fewer busy cores."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls, 3 to 24 cores per GPU",
        "SageMaker Debugger CPUBottleneck",
        "gpulse H200 trace `input_cpu_16`",
    ),
)  # fmt: skip
