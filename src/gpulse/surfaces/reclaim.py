"""The list of `gpulse reclaim`: who holds memory for nothing, and what would follow."""

from __future__ import annotations

from ..present.decisions import step_text
from ..present.text import aligned, clean
from ..units import duration_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.reclaim import ReclaimPolicy, ReclaimStep


def reclaim_lines(steps: Sequence[ReclaimStep], policy: ReclaimPolicy) -> list[str]:
    """Return the lines of the list."""
    if not steps:
        return [f"No process holds {size_text(policy.memory)} or more."]
    titles = ("GPU", "PID", "USER", "NAME", "HOLDS", "IDLE", "NEXT")
    rows = [titles, *(_row(step) for step in steps)]
    ends = "ended" if policy.terminate else "never ended: terminate is off"
    rule = f"Idle for {duration_text(policy.idle)}: owner warned"
    rule += f", administrators told {duration_text(policy.admin_after)} later" if policy.reports else ""
    rule += f", {ends}" + (f" {duration_text(policy.grace)} after the warning" if policy.terminate else "")
    return [*aligned(rows, right=(False, True, False, False, True, True, False)), "", f"{rule}."]


def _row(step: ReclaimStep) -> tuple[str, ...]:
    process = step.holding.process
    idle = "" if step.idle is None else f"≥ {duration_text(step.idle)}"
    held = size_text(process.memory_used or 0.0)
    names = clean(process.user or "?"), clean(process.name or "?")
    return step.holding.gpu or "?", f"{process.pid:.0f}", *names, held, idle, step_text(step)


def steps_to_plain(steps: Sequence[ReclaimStep], policy: ReclaimPolicy, now: float) -> dict[str, Any]:
    """Return the list as JSON takes it."""
    rows = []
    for step in steps:
        holding, process = step.holding, step.holding.process
        row: dict[str, Any] = {"gpu": holding.gpu, "uuid": holding.uuid, "pid": process.pid, "user": process.user}
        row |= {"name": process.name, "memory_used": process.memory_used, "action": step.action, "reason": step.reason}
        rows.append(row | {"idle": step.idle, "due": step.due})
    return {"schema": 1, "time": now, "terminate": policy.terminate, "idle": policy.idle, "processes": rows}
