"""Reclaim: which processes hold GPU memory for nothing, by all that was recorded, and what is to be done about each next."""

from __future__ import annotations

from ..model.event import Event
from ..model.snapshot import Cadence
from ..model.when import within
from ..value import Value
from .alerts.rule import Finding
from .alerts.rule_set import RuleSet
from .alerts.work import IdleAllocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..model.catalog import Process
    from ..model.snapshot import Snapshot
    from ..model.when import Hours
    from .alerts.rule import RuleInput

_LATE = 90.0  # seconds by which the last record may be older than now
_WORKS = 0.3  # share of a core from which a process works, on the CPU


class ReclaimPolicy(Value):
    """What idle means and what follows, in seconds: after `idle` the owner is warned, `admin_after` later the administrators are told,
    and `grace` after the warning the process is ended, if `terminate`. It acts in `hours` only; without any, always.
    """

    idle: float = 7200.0
    memory: float = float(1 << 30)
    admin_after: float = 3600.0
    grace: float = 14_400.0
    terminate: bool = False
    reports: bool = False  # whether there are administrators to tell
    hours: Sequence[Hours] = ()
    exempt_users: Collection[str] = ()
    exempt_names: Collection[str] = ()
    exempt_gpus: Collection[str] = ()


class Holding(Value):
    """A process that holds memory of a GPU now. `started` and `cpu` are its start and its CPU time, in seconds; None if unknown."""

    uuid: str
    gpu: str
    process: Process
    started: float | None
    cpu: float | None

    @property
    def key(self) -> str:
        """What it is known by: its GPU, PID and start."""
        return f"{self.uuid}/{self.process.pid or 0:.0f}/{self.started}"

    def event(self, time: float, kind: str, idle: float | None) -> Event:
        """Return an event about it."""
        values: dict[str, float | str] = {} if idle is None else {"idle": idle}
        gpus, uuids = (self.gpu or "?",), (self.uuid,)
        held = self.process.memory_used
        return Event(time, kind, gpus, uuids=uuids, process=self.process, value=held, values=values)


class ReclaimStep(Value):
    """What is to be done about a holding: `action` is warn, report, end, wait, spare or unknown, `reason` says why.

    `idle` is for how long it has been idle at least, `due` when the next step follows; None if unknown or never.
    """

    action: str
    holding: Holding
    reason: str = ""
    idle: float | None = None
    due: float | None = None


class _IdleThroughout(IdleAllocation):
    """The same rule, but what is not known to be idle is not idle."""

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for finding in super().findings(sample):
            gpu = sample.gpus.get(finding.uuid)
            seen = gpu is not None and gpu.state in ("ok", "asleep") and "processes" not in gpu.gaps
            if not finding.over and (finding.holds is None or not seen):
                finding.holds, finding.calm = False, True
            yield finding


def idle_holders(
    snapshots: Iterable[Snapshot], policy: ReclaimPolicy, now: float
) -> tuple[set[tuple[str, float]], str]:
    """Return the processes, as UUID and PID, that were idle in all samples of the last `idle` seconds; and why nobody can tell.

    A hole in the samples restarts the time: what happened in it is not known.
    """
    cadence, last = Cadence(600.0), None
    rules, hole = _rules(policy), ""
    for snapshot in snapshots:
        if cadence.next(snapshot.time)[1] and last is not None:
            rules, hole = _rules(policy), "nothing was recorded for a while"
        rules.observe(snapshot)
        last = snapshot.time
    if last is None or now - last > _LATE:
        return set(), "nothing is being recorded"
    return {
        (alert.uuid, float(alert.what)) for alert in rules.active if alert.standing is None or alert.standing.holds
    }, hole


def _rules(policy: ReclaimPolicy) -> RuleSet:
    return RuleSet([_IdleThroughout({"for": policy.idle, "memory": policy.memory})])


def next_step(
    holding: Holding, idle: bool, record: Mapping[str, Any] | None, policy: ReclaimPolicy, now: float, doubt: str = ""
) -> ReclaimStep:
    """Return what is to be done; `record` says when its owner was warned and the administrators were told, None if never."""
    if reason := _exempt(holding, policy):
        return ReclaimStep("spare", holding, reason)
    if holding.started is None:
        return ReclaimStep("unknown", holding, "its start time cannot be read")
    if not idle:
        return ReclaimStep("unknown" if doubt else "spare", holding, doubt or "it has worked")
    if record is None:
        return _now_or_later(ReclaimStep("warn", holding, "", policy.idle), policy, now)
    warned = float(record["warned"])
    lasted = policy.idle + now - warned
    before = record.get("cpu")
    if holding.cpu is None or not isinstance(before, (int, float)):
        return ReclaimStep("unknown", holding, "its CPU time cannot be read", lasted)
    if holding.cpu - before > _WORKS * max(60.0, now - warned):
        return ReclaimStep("spare", holding, "it has worked on the CPU since its owner was warned", lasted)
    return _now_or_later(_after_warning(holding, record, policy, now, lasted), policy, now)


def _after_warning(
    holding: Holding, record: Mapping[str, Any], policy: ReclaimPolicy, now: float, idle: float
) -> ReclaimStep:
    warned = float(record["warned"])
    if policy.reports and not record.get("reported"):
        action, due = "report", warned + policy.admin_after
    elif policy.terminate:
        action, due = "end", warned + policy.grace
    else:
        return ReclaimStep("wait", holding, "everybody concerned has been told", idle)
    return (
        ReclaimStep(action, holding, "", idle)
        if now >= due
        else ReclaimStep("wait", holding, "owner warned", idle, due)
    )


def _now_or_later(step: ReclaimStep, policy: ReclaimPolicy, now: float) -> ReclaimStep:
    if step.action == "wait" or not policy.hours or within(policy.hours, now):
        return step
    return ReclaimStep(
        "wait", step.holding, f"{step.action} only {', '.join(one.text for one in policy.hours)}", step.idle
    )


def _exempt(holding: Holding, policy: ReclaimPolicy) -> str:
    process = holding.process
    if not process.user:
        return "its owner is not known"
    if process.user in policy.exempt_users:
        return "its owner is exempt"
    words = {process.name or "", *(process.command or "").split()}
    if not (words | {word.rpartition("/")[2] for word in words}).isdisjoint(policy.exempt_names):
        return "its command is exempt"
    return "its GPU is exempt" if holding.gpu in policy.exempt_gpus or holding.uuid in policy.exempt_gpus else ""
