"""input_bound_cpu: the GPU waits for workers that prepare data on the CPU."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, above, found, seen, sure, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

CPUS = 85.0  # per cent of all CPUs


def _judge(case: Case) -> Verdict | None:
    load = case.load
    cores, tree, workers = load.cores, load.cpu_tree, load.workers
    of_all = None if not cores or tree is None else 100 * tree / cores
    host = load.host("cpu_percent")
    if of_all is not None and of_all >= CPUS and (cores or 0.0) > 1:
        kind, advice = "all_cores", ("gpu_transforms", "precompute", "more_cores")
    elif host is not None and host >= 95.0:
        kind, advice = "busy_host", ("gpu_transforms", "precompute", "more_cores")
    else:
        kind = "all_workers" if workers >= 1 else "threads"
        room = cores is None or workers + 1 < cores
        advice = (
            ("more_workers", "gpu_transforms", "precompute") if room else ("gpu_transforms", "precompute", "more_cores")
        )
    evidence = [
        told("workers_share", load.parts.get("workers", 0.0)),
        above("tree_share", of_all, CPUS) if kind == "all_cores" else None,
        above("host_cpu", host, 95.0) if kind == "busy_host" else None,
        seen("workers", workers) if workers >= 1 else None,
        seen("cpu_per_worker", load.cpu_workers / workers) if workers >= 1 else None,
        seen("cpu_tree", tree),
        seen("busy", load.busy),
    ]
    confidence = sure(load, "workers")
    return found(
        load, "input_bound_cpu", confidence, evidence, advice=advice, kind=kind, workers=workers, cores=cores,
        per_worker=load.cpu_workers / workers if workers >= 1 else None,
    )  # fmt: skip


RULE = DiagnosisRule(
    "input_bound_cpu",
    "feeding",
    "phase",
    _judge,
    part="workers",
    needs=("tree_cpu_percent", "children", "utilization"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while the thread that feeds it waits and its workers run, and that "
        "is more than it waits for anything else."
    ),
    blind=(
        "What the workers compute is not visible; it is usually decoding and augmentation. A program throttled by the CPU quota of its "
        "container shows fewer busy cores."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls, 3 to 24 cores per GPU",
        "SageMaker Debugger CPUBottleneck",
        "gpulse H200 trace `input_cpu_16`",
    ),
    advice=("gpu_transforms", "precompute", "more_cores", "more_workers"),
)
