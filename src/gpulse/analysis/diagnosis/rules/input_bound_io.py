"""input_bound_io: the program waits for storage or the network, and the GPU waits for the program."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

BUSY = 80.0  # per cent of kernel time
WAITING = 0.30  # cores that wait for disks
READ = 50e6  # bytes per second from storage or network
CPU = 0.70  # cores of the main process, and of each worker


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy = load.busy
    if busy is None or busy >= BUSY:
        return None
    iowait, cores = load.host("iowait"), load.cores
    waiting = None if iowait is None or not cores else iowait * cores / 100.0
    reads = load.process_mean("tree_read")
    if reads is None:
        reads = load.host("disk_read")
    network = load.host("net_rx")
    each = load.cpu_workers / load.workers if load.workers >= 1 else 0.0
    if (load.cpu_main or 0.0) >= CPU or each >= CPU:
        return None
    blocked = waiting is not None and waiting >= WAITING
    reading = reads is not None and reads >= READ
    fetching = network is not None and network >= READ
    if not (blocked and (reads or 0.0) > 1e6) and not reading and not fetching:
        return None
    sure: Confidence = "high" if blocked and reading and busy < 60 else "medium" if blocked or reading else "low"
    evidence = [
        above("iowait_cores", waiting, WAITING) if blocked else None,
        above("read_rate", reads, READ) if reading else seen("read_rate", reads),
        above("net_rx", network, READ) if fetching else None,
        below("busy", busy, BUSY),
        below("cpu_main", load.cpu_main, CPU),
    ]
    kind = "network" if fetching and not reading and not blocked else "disk"
    return found(load, "input_bound_io", sure, evidence, advice=RULE.advice, kind=kind, rate=reads)


RULE = DiagnosisRule(
    "input_bound_io",
    "feeding",
    "phase",
    _judge,
    needs=("iowait", "tree_read or disk_read", "utilization"),
    signature=(
        f"Kernels run less than {BUSY:.0f} % of the time, the main process and its workers use less than "
        f"{CPU:g} cores each, and {WAITING:g} cores or "
        f"more wait for disks or the program reads more than {READ / 1e6:.0f} MB/s from storage or network."
    ),
    blind=(
        "Data in the page cache costs no disk read, so a second epoch looks different. Network file systems "
        "do not always count as I/O wait "
        "or as reads of the process."
    ),
    sources=(
        "Analyzing and Mitigating Data Stalls in DNN Training (PVLDB 14): fetch stalls",
        "SageMaker Debugger IOBottleneck",
    ),
    advice=("local_copy", "larger_shards", "more_workers"),
)
