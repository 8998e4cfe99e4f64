"""serving_idle: a model server holds its memory and has no traffic."""

from __future__ import annotations

from ...readings import IDLE_AFTER, activity
from ..load import holder_of
from ..rule import DiagnosisRule, above, found, seen, served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case


def _judge(case: Case) -> Verdict | None:
    load = case.load
    said = served(load)
    if said is None or activity(said.last) != "idle" or case.worked:
        return None
    quiet = said.last.idle_time or 0.0
    evidence = [
        above("idle_time", quiet, IDLE_AFTER),
        seen("memory_used", load.high("memory_used")),
        seen("power_draw", load.mean("power_draw")),
    ]
    return found(
        load,
        "serving_idle",
        "high",
        evidence,
        advice=RULE.advice,
        processes=[holder_of(track) for track in load.own],
        quiet=quiet,
        model=said.last.model or said.last.server or "",
    )


RULE = DiagnosisRule(
    "serving_idle",
    "rest",
    "window",
    _judge,
    needs=("serving",),
    signature=(
        f"A model server has no running and no waiting requests, and none of its counters has grown for {IDLE_AFTER:.0f} s; no kernel ran "
        "in the window."
    ),
    blind="Counts from the time at which gpulse first asked the server.",
    sources=("gpulse: by the server's own counters, not by utilization",),
    advice=("share_gpu", "smaller_gpu"),
)
