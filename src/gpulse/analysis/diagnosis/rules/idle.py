"""idle: nothing runs and nothing is held."""

from __future__ import annotations

from ...events import IDLE_HELD
from ..rule import DiagnosisRule, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

BUSY = 1.0  # percent
DRAWING = 10.0  # percent that a display may take where no process computes


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy = load.busy
    if all(row.state == "asleep" for row in case.gpu.rows):
        return found(load, "idle", "high", [seen("state_asleep", load.seconds)], processes=())
    alone = case.gpu.lists_processes and not load.tracks
    if not case.gpu.lists_processes and (load.high("memory_used") or 0.0) >= IDLE_HELD:
        return None  # somebody holds it
    if busy is None or load.tracks or busy >= (DRAWING if alone else BUSY) or (case.worked and not alone):
        return None
    evidence = [below("busy", busy, DRAWING if alone else BUSY), seen("power_draw", load.mean("power_draw"))]
    return found(load, "idle", "high", evidence, processes=())


RULE = DiagnosisRule(
    "idle",
    "rest",
    "window",
    _judge,
    needs=("utilization",),
    signature=(
        f"No process computes and the GPU was busy for less than {DRAWING:g} % of the time (a display "
        f"draws; {BUSY:g} % where processes cannot "
        "be listed), or it was asleep."
    ),
    blind="Light work of processes in other containers looks like that of a display.",
    sources=("gpulse H200 recordings",),
)
