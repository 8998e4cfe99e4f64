"""underused: a model server without enough requests."""

from __future__ import annotations

from ....model.serving import serves
from ..rule import WAIT, DiagnosisRule, found, seen, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..rule import Case


def _judge(case: Case) -> Verdict | None:
    load = case.load
    if load.main is None or not serves(load.main.process):
        return None
    confidence: Confidence = "high" if load.seconds >= 30 else "medium"
    evidence = [
        told("outside_share", load.parts.get("outside", 0.0)),
        seen("busy", load.busy),
        seen("cpu_tree", load.cpu_tree),
        seen("memory_percent", load.memory_share),
    ]
    return found(load, "underused", confidence, evidence, advice=RULE.advice, kind="server")


RULE = DiagnosisRule(
    "underused",
    "feeding",
    "phase",
    _judge,
    part="outside",
    needs=("utilization", "tree_cpu_percent", "command"),
    signature=(
        f"A model server, known by its command line, waits for something outside for {100 * WAIT:.0f} % of the time or more, and for "
        "nothing else that long."
    ),
    blind="A server is recognized only by its command line; others are told that they wait.",
    sources=("Princeton jobstats: mean utilization below 15 %",),
    advice=("smaller_gpu", "share_gpu", "batch_requests"),
)
