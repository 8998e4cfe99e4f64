"""input_bound_io: the GPU waits for data that is read from storage."""

from __future__ import annotations

from ..parts import IOWAIT, READ
from ..rule import WAIT, DiagnosisRule, Span, Verdict, above, lower, seen, sure, told


def _judge(span: Span) -> Verdict | None:
    iowait, cores = span.host("iowait"), span.cores
    waiting = None if iowait is None or not cores else iowait * cores / 100.0
    reads = span.process_mean("tree_read")
    blocked = span.process_mean("workers_blocked")
    disk = span.states.get("disk")
    evidence = [
        told("storage_share", span.parts.get("storage", 0.0)),
        above("iowait_cores", waiting, IOWAIT) if (waiting or 0.0) >= IOWAIT else None,
        above("read_rate", reads, READ) if (reads or 0.0) >= READ else seen("read_rate", reads),
        seen("thread_disk", 100 * disk) if disk else None,
        seen("workers_blocked", blocked) if blocked else None,
        seen("busy", span.busy),
    ]
    confidence = sure(span, "storage")
    if (waiting or 0.0) < IOWAIT and not disk and not blocked:
        confidence = lower(confidence)  # bytes alone do not say that anything waited for them
    return RULE.found(span, confidence, evidence, kind="disk", rate=reads)


RULE = DiagnosisRule(
    "input_bound_io", "feeding", "phase", _judge, part="storage",
    needs=("tree_read", "iowait or thread_state", "utilization"),
    advice=("local_copy", "larger_shards", "more_workers"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while the program or its workers wait for a disk, or "
        f"read more than {READ / 1e6:.0f} MB/s without using the CPU, and that is more than it waits for anything else."
    ),
    blind=(
        "Data in the page cache costs no disk read, so a second epoch looks different. Network file systems do not "
        "always count as I/O wait or as reads of the process; then the verdict is `waiting`."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): fetch stalls",
        "SageMaker Debugger IOBottleneck",
    ),
)  # fmt: skip
