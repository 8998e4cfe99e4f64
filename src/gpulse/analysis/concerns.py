"""What is wrong now: verdicts and active alerts as one list, each condition of a GPU once, the worst and costliest first."""

from __future__ import annotations

from ..model.budget import WAITS
from ..model.concern import Concern
from ..model.condition import SEVERITIES, of_event, of_verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model.event import Event
    from ..model.verdict import Diagnosis, Verdict

_WORST: dict[str, int] = {severity: place for place, severity in enumerate(SEVERITIES)}
BAD = ("critical", "warn")
_ALL = (
    "lost",
    "driver_unresponsive",
    "hang",
    "orphaned_memory",
    "idle_allocation",
)  # nothing of the GPU is of use meanwhile


def concerns(diagnosis: Diagnosis, alerts: Iterable[Event] = (), now: float | None = None) -> tuple[Concern, ...]:
    """Return what is wrong at `now`, the end of the diagnosis by default; `alerts` are the events of active alerts."""
    time = diagnosis.end if now is None else now
    found: dict[tuple[str, str], Concern] = {}
    for verdict in diagnosis:
        for one in (verdict, *verdict.also):
            if (concern := _of_verdict(one, verdict, time)) is not None:
                found[concern.key, _place(concern)] = concern
    for event in alerts:
        concern = _of_alert(event, time)
        known = found.get((concern.key, _place(concern)))
        if known is None:
            found[concern.key, _place(concern)] = concern
        elif concern.since is not None:
            found[concern.key, _place(concern)] = known.replace(since=min(concern.since, known.since or concern.since))
    return tuple(sorted(_joined(list(found.values())), key=_cost))


def _place(concern: Concern) -> str:
    return concern.uuids[0] if concern.uuids else ",".join(concern.gpus)


def _cost(concern: Concern) -> tuple[int, float, tuple[str, ...]]:
    return _WORST.get(concern.severity, len(_WORST)), -concern.lost, concern.gpus


def _of_verdict(verdict: Verdict, whole: Verdict, time: float) -> Concern | None:
    condition = of_verdict(verdict.key, verdict.values.get("kind"))
    code = verdict.values.get("xid")
    severity = "info" if condition is None else condition.severity(code if isinstance(code, (int, float)) else None)
    if condition is None or severity not in BAD:
        return None
    since = whole.since if verdict.since is None and verdict is whole else verdict.since
    begun = verdict.start if since is None else since
    holder = verdict.processes[0] if verdict.processes else None
    name = "?" if verdict.index is None else f"{verdict.index}"
    return Concern(
        condition.key,
        severity,
        time,
        gpus=(f"{name}:{verdict.instance}" if verdict.instance else name,),
        uuids=() if verdict.uuid is None else (verdict.uuid,),
        owner="" if holder is None else holder.user,
        pid=None if holder is None else holder.pid,
        since=begun,
        lost=_lost_share(verdict, whole) * max(0.0, time - begun),
        expected=_expected(verdict, time),
        confidence=verdict.confidence,
        verdict=verdict,
    )


def _lost_share(verdict: Verdict, whole: Verdict) -> float:
    """Return the share of the GPU's time (0–1) that a condition costs."""
    if verdict.key in _ALL:
        return 1.0
    budget = whole.budget
    if budget is None or verdict is not whole:
        return 0.0
    return sum(budget.shares.get(part, 0.0) for part in (*WAITS, "throttled"))


def _expected(verdict: Verdict, time: float) -> float | None:
    """Return when a leak fills the memory, the earlier end of the estimate."""
    eta = verdict.values.get("eta")
    return time + float(eta[0]) if isinstance(eta, tuple) and eta and isinstance(eta[0], (int, float)) else None


def _of_alert(event: Event, time: float) -> Concern:
    condition = event.condition or of_event(event.kind, event.reasons)
    process = event.process
    return Concern(
        event.kind if condition is None else condition.key,
        event.severity,
        time,
        gpus=event.gpus,
        uuids=event.uuids,
        owner="" if process is None else process.user or "",
        pid=None if process is None or process.pid is None else int(process.pid),
        since=event.time,
        event=event,
    )


def _joined(found: Sequence[Concern]) -> list[Concern]:
    """Return one concern for several GPUs of the same process that have the same one."""
    groups: dict[tuple[object, ...], list[Concern]] = {}
    for at, one in enumerate(found):
        key = (one.key, one.severity, one.pid) if one.pid is not None else (one.key, at)
        groups.setdefault(key, []).append(one)
    return [
        group[0].replace(
            gpus=[name for one in group for name in one.gpus],
            uuids=[uuid for one in group for uuid in one.uuids],
            lost=sum(one.lost for one in group),
            since=min((one.since for one in group if one.since is not None), default=None),
        )
        for group in groups.values()
    ]
