"""idle: nothing runs and nothing is held."""

from __future__ import annotations

from ..rule import Rule, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

BUSY = 1.0


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy = load.busy
    if case.worked or busy is None or busy >= BUSY or load.tracks:
        return None
    evidence = [below("busy", busy, BUSY), seen("power_draw", load.mean("power_draw"))]
    return found(load, "idle", "high", evidence, processes=())


RULE = Rule(
    "idle",
    "rest",
    "window",
    _judge,
    needs=("utilization",),
    signature=f"No process is visible and the GPU was busy for less than {BUSY:g} % of the time.",
    blind="None known.",
    sources=("gpulse H200 recordings",),
)
