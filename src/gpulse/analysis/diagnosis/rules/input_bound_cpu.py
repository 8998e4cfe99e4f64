"""input_bound_cpu: the CPUs, or all loader workers, are saturated and the GPU waits for them."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

BUSY = 80.0  # per cent of kernel time
CPUS = 85.0  # per cent of all CPUs
WORKER = 0.70  # cores used by each worker


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, cores, tree = load.busy, load.cores, load.cpu_tree
    if busy is None or busy >= BUSY or tree is None:
        return None
    host = load.host("cpu_percent")
    of_all = None if not cores else 100 * tree / cores
    each = load.cpu_workers / load.workers if load.workers >= 1 else 0.0
    if of_all is not None and of_all >= CPUS and (cores or 0.0) > 1:
        kind, evidence = "all_cores", [above("tree_share", of_all, CPUS)]
    elif load.workers >= 2 and each >= WORKER and load.idle_share + (1 - busy / 100) >= 0.2:
        kind, evidence = "all_workers", [above("cpu_per_worker", each, WORKER), seen("workers", load.workers)]
    elif host is not None and host >= 95.0 and tree >= 1.5:
        kind, evidence = "busy_host", [above("host_cpu", host, 95.0)]
    else:
        return None
    sure: Confidence = "high" if kind == "all_cores" and busy < 60 else "medium"
    evidence += [below("busy", busy, BUSY), seen("cpu_tree", tree), seen("idle_share", 100 * load.idle_share)]
    advice = (
        ("gpu_transforms", "precompute", "more_cores")
        if kind != "all_workers"
        else ("more_workers", "gpu_transforms", "precompute")
    )
    return found(load, "input_bound_cpu", sure, evidence, advice=advice, kind=kind, workers=load.workers, cores=cores)


RULE = DiagnosisRule(
    "input_bound_cpu",
    "feeding",
    "phase",
    _judge,
    needs=("tree_cpu_percent", "utilization"),
    signature=(
        f"Kernels run less than {BUSY:.0f} % of the time while the program and its workers use {CPUS:.0f} "
        f"% of all CPUs, or each of two or more "
        f"workers uses {WORKER:g} cores or more."
    ),
    blind=(
        "CPU limits of a container are not known from outside: a program throttled by its quota shows fewer busy cores. What the CPUs "
        "compute is not visible; it is usually decoding and augmentation."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): prep stalls, 3 to 24 cores per GPU",
        "SageMaker Debugger CPUBottleneck",
        "gpulse H200 trace `input_cpu_16`",
    ),
    advice=("gpu_transforms", "precompute", "more_cores", "more_workers"),
)
