"""underused: short work at long intervals and a program that waits for something outside, as a server waits for requests."""

from __future__ import annotations

from ....model.servers import serves
from ..rule import DiagnosisRule, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

BUSY = 35.0  # per cent of kernel time
CPU = 0.60  # cores


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy, cpu = load.busy, load.cpu_tree
    if not case.worked or busy is None or busy >= BUSY or cpu is None or cpu >= CPU:
        return None
    server = load.main is not None and serves(load.main.process)
    sure: Confidence = "high" if server and load.seconds >= 30 else "medium"
    evidence = [
        below("busy", busy, BUSY),
        below("cpu_tree", cpu, CPU),
        seen("idle_share", 100 * load.idle_share),
        seen("memory_percent", load.memory_share),
    ]
    return found(load, "underused", sure, evidence, advice=RULE.advice, kind="server" if server else "waits")


RULE = DiagnosisRule(
    "underused",
    "feeding",
    "phase",
    _judge,
    needs=("utilization", "tree_cpu_percent"),
    signature=f"Kernels run less than {BUSY:.0f} % of the time and the program with its children uses less than {CPU:g} cores.",
    blind=(
        "Waiting for requests, for another machine, for a lock and sleeping look the same; a network file system may hide here too. A "
        "server is recognized only by its command line."
    ),
    sources=("Princeton jobstats: mean utilization below 15 %", "ICSE 2024 study: interactive jobs"),
    advice=("smaller_gpu", "share_gpu", "batch_requests"),
)
