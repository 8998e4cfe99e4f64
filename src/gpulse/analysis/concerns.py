"""What is wrong now: verdicts and active alerts as one list, each condition of a GPU once, the worst and costliest first."""

from __future__ import annotations

from ..model.catalog import DOWN
from ..model.condition import SEVERITIES
from ..model.verdict import WAITS, Concern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal, TypeAlias

    from ..model.catalog import Gpu
    from ..model.verdict import Budget, Diagnosis, Verdict
    from .alerts import Transition

    Standing: TypeAlias = Literal["healthy", "idle", "problem", "unjudged"]

_WORST: dict[str, int] = {severity: place for place, severity in enumerate(SEVERITIES)}
BAD = ("critical", "warn")
_EDGE = 1.0  # seconds after the first sample in which what begins may as well have begun before it
# Meanwhile nothing of the GPU is of use.
_ALL = frozenset(
    ("lost", "removed", "driver_unresponsive", "hang", "orphaned_memory", "idle_allocation", "stalled", "not_used")
) | {"allocation_unused"}
_DOWN = frozenset(("lost", "driver_unresponsive"))
# The parts of the time budget that a condition costs, where that is not the one part that its rule explains.
_COSTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("hw_slowdown", "thermal_throttled", "power_throttled"), ("throttled",)),
    **dict.fromkeys(("communication_bound", "straggler"), ("network",)),
    "waiting": ("outside", "unexplained"),
    "stalls": WAITS,
}


def concerns(diagnosis: Diagnosis, alerts: Iterable[Transition] = (), now: float | None = None) -> tuple[Concern, ...]:
    """Return what is wrong at `now`, the end of the diagnosis by default; an active alert counts while its condition holds."""
    time = diagnosis.end if now is None else now
    found = [
        _of_verdict(one, cost(one.key, whole.budget), diagnosis.start, time)
        for whole in diagnosis
        for one in (whole, *whole.also)
        if one.severity in BAD and not _is_over(one) and (one is whole or not _is_hidden(one, whole))
    ]
    names = {one.uuid: one.label for one in diagnosis}
    for alert in alerts:
        if alert.severity in BAD and (alert.standing is None or alert.standing.holds):
            concern = _of_alert(alert, names, time)
            same = [one for one in found if _is_same(one, concern)]
            found = [one for one in found if not _is_same(one, concern)]
            found.append(_merged(_together(same), concern) if same else concern)
    return tuple(sorted(_joined(found), key=_rank))


def cost(key: str, budget: Budget | None) -> float:
    """Return the share of a GPU's time (0–1) that a condition costs; 0 for what is bad without costing time."""
    if key in _ALL:
        return 1.0
    from .diagnosis.rules import BY_KEY  # loads all rules: a screen without a verdict has its first frame before

    rule = BY_KEY.get(key)
    parts = _COSTS.get(key, () if rule is None else (rule.part,))
    return 0.0 if budget is None else sum(budget.shares.get(part, 0.0) for part in parts)


# Verdicts that say what nobody knows: what the GPU does, or what its program will do.
_UNJUDGED = frozenset(("unknown", "starting", "loading")) | _DOWN
_IDLE = frozenset(("idle", "serving_idle"))


def standing_of(gpu: Gpu, diagnosis: Diagnosis) -> Standing:
    """Return whether a GPU is healthy, idle, has a problem, or was not judged; its MIG instances are judged with it.

    Healthy needs a judgement: a GPU that cannot be read, or whose readings do not tell, is not.
    """
    parts = (gpu, *gpu.instances)
    found = [one for part in parts for one in diagnosis if part.uuid is not None and one.uuid == part.uuid]
    keys = {one.key for one in found}
    judged = {one.uuid for one in found}
    if any(one.severity in BAD and not _is_over(one) for whole in found for one in (whole, *whole.also)):
        return "problem"
    if gpu.state in DOWN or keys & _UNJUDGED or not all(part.uuid in judged for part in gpu.instances or (gpu,)):
        return "unjudged"
    return "idle" if keys <= _IDLE else "healthy"


def _rank(concern: Concern) -> tuple[object, ...]:
    soon = float("inf") if concern.expected is None else concern.expected
    numbers = [int(part) if part.isdecimal() else 0 for name in concern.gpus[:1] for part in name.split(":")]
    return _WORST[concern.severity], -concern.lost, soon, numbers, concern.gpus


def _is_over(verdict: Verdict) -> bool:
    """Tell whether a GPU that was lost or did not respond does so again; other verdicts are about all of the window."""
    return verdict.values.get("end_time") is not None or verdict.values.get("kind") == "recovered"


def _is_hidden(verdict: Verdict, whole: Verdict) -> bool:
    """Tell whether the GPU does not respond now: what lasted until then cannot be seen to last."""
    condition = verdict.condition
    return whole.key in _DOWN and not _is_over(whole) and condition is not None and condition.lasting


def _of_verdict(verdict: Verdict, cost: float, watched: float, time: float) -> Concern:
    """Return a verdict as a concern; one that held from the beginning of what was `watched` began nobody knows when."""
    began = verdict.values.get("start_time", verdict.start)
    first = began if isinstance(began, (int, float)) else verdict.start
    seen = first if verdict.since is None or verdict.key in _DOWN else min(first, verdict.since)
    known = verdict.since is not None or first > watched + _EDGE
    holder = verdict.processes[0] if verdict.processes else None
    eta = verdict.values.get("eta")
    return Concern(
        verdict.key,
        verdict.severity,
        time,
        gpus=(verdict.label,),
        uuids=() if verdict.uuid is None else (verdict.uuid,),
        owner="" if holder is None else holder.user,
        pid=None if holder is None else holder.pid,
        since=seen if known else None,
        lost=cost * max(0.0, time - seen),
        expected=verdict.end + float(eta[0]) if isinstance(eta, tuple) and eta else None,
        confidence=verdict.confidence,
        verdict=verdict,
    )


def _of_alert(alert: Transition, names: dict[str | None, str], time: float) -> Concern:
    event = alert.event
    condition = event.condition
    key = event.kind if condition is None else condition.key
    full, process = event.values.get("full_in_low"), event.process
    return Concern(
        key,
        event.severity,
        time,
        gpus=tuple(names.get(uuid, name) for uuid, name in zip(event.uuids, event.gpus, strict=False)) or event.gpus,
        uuids=event.uuids,
        owner=str(event.values.get("user") or "") if process is None else process.user or "",
        pid=None if process is None or process.pid is None else int(process.pid),
        since=alert.since,
        lost=max(0.0, time - alert.since) if key in _ALL else 0.0,
        expected=alert.last_true + full if isinstance(full, (int, float)) else None,
        event=event,
        alerts=(alert.id,),
    )


def _is_same(known: Concern, alert: Concern) -> bool:
    """Tell whether an alert is about the condition that a verdict found: on that GPU, of one of its processes, with that code.

    The alert of a model server is about all its GPUs, of which each has a verdict.
    """
    verdict, event = known.verdict, alert.event
    if verdict is None or event is None or known.key != alert.key:
        return False
    if not known.uuids or not set(known.uuids) <= set(alert.uuids):
        return False
    pids = {one.pid for one in verdict.processes}
    code = verdict.values.get("xid") if known.key == "xid" else None
    return (alert.pid is None or not pids or alert.pid in pids) and (code is None or code == event.value)


def _merged(known: Concern, alert: Concern) -> Concern:
    return known.replace(
        severity=min(known.severity, alert.severity, key=_WORST.__getitem__),
        owner=known.owner or alert.owner,
        pid=alert.pid if known.pid is None else known.pid,
        since=min((one.since for one in (known, alert) if one.since is not None), default=None),
        lost=max(known.lost, alert.lost),
        expected=alert.expected if known.expected is None else known.expected,
        event=alert.event,
        alerts=tuple(dict.fromkeys((*known.alerts, *alert.alerts))),
    )


def _joined(found: Sequence[Concern]) -> list[Concern]:
    """Return one concern for several GPUs of the same process that have the same one."""
    groups: dict[tuple[object, ...], list[Concern]] = {}
    for at, one in enumerate(found):
        key = (one.key, one.severity, one.pid) if one.pid is not None else (one.key, at)
        groups.setdefault(key, []).append(one)
    return [_together(group) for group in groups.values()]


def _together(group: Sequence[Concern]) -> Concern:
    """Return one concern for those of several GPUs."""
    if len(group) == 1:
        return group[0]
    return group[0].replace(
        gpus=tuple(dict.fromkeys(name for one in group for name in one.gpus)),
        uuids=tuple(dict.fromkeys(uuid for one in group for uuid in one.uuids)),
        alerts=tuple(dict.fromkeys(id for one in group for id in one.alerts)),
        lost=sum(one.lost for one in group),
        since=min((one.since for one in group if one.since is not None), default=None),
        expected=min((one.expected for one in group if one.expected is not None), default=None),
    )
