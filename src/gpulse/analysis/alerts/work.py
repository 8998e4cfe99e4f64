"""Rules for who works: memory held for nothing, stalls, jobs that end, GPUs that become free, model servers, and verdicts."""

from __future__ import annotations

from ...model.catalog import USERS
from ...model.condition import of_verdict
from ...model.event import Event
from ...model.select import Wanted
from ..concerns import BAD
from ..diagnosis.running import LiveDiagnosis
from ..diagnosis.window import WANTED
from ..events import IDLE_CPU, IDLE_HELD
from ..readings import REST_SM, STUCK_AFTER, UNLISTED, activity, number_of, unlisted_memory
from .latch import Latch
from .rule import AlertRule, Finding, Lasting, duration, number, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...model.catalog import Gpu, Server
    from ...model.verdict import Verdict
    from .rule import RuleInput
    from .rule_set import HolderProcess
    from .transition import Transition

_BUSY = 5.0  # per cent of utilization from which a GPU counts as used by somebody, listed or not


class IdleAllocation(Lasting):
    """A process that holds memory, but has not worked for long: neither on the GPU nor, where that is known, on the CPU."""

    name = "idle_allocation"
    settings = {
        "memory": (size, float(IDLE_HELD)),
        "for": (duration, 900.0),
        "clear_for": (duration, 0.0),
        "cpu": (number, 100 * IDLE_CPU),
    }
    wanted = Wanted(
        gpu=("utilization", "sm_active"),
        process=(
            "pid",
            "name",
            "user",
            "memory_used",
            "sm_utilization",
            "cpu_percent",
            "tree_cpu_percent",
            "running_time",
        ),
    )

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        yield from sample.ended()
        for holder in sample.holders.present():
            if holder.held is None or holder.process.type == "G":
                continue
            serves = any(holder.gpu.uuid in (server.gpus or ()) for server in sample.snapshot.serving)
            idle = False if serves else self._idle(holder)  # a server without traffic is told as that
            idle = idle if sample.answers(holder.uuid) else None
            holds = holder.held >= self.value("memory") and idle if idle is not None else None
            values: dict[str, float | str] = {"memory_used": holder.held, "pid": holder.process.pid or 0}
            values |= {"user": holder.process.user} if holder.process.user else {}
            values["idle"] = self.value("for")
            event = holder.event(sample.snapshot.time, "idle-allocation", value=holder.held, values=values)
            yield Finding(holder.uuid, holds, event=event, what=holder.pid)

    def _idle(self, holder: HolderProcess) -> bool | None:
        process, gpu = holder.process, holder.gpu
        if holder.cpu is not None and holder.cpu >= self.value("cpu"):
            return False
        use = gpu.utilization if gpu.utilization is not None else gpu.sm_active
        if use is not None and use < 1 and (gpu.sm_active or 0.0) <= REST_SM:
            return True
        if process.sm_utilization is not None:
            return process.sm_utilization < 1
        others = any(other.sm_utilization is not None for other in gpu.processes)
        if others and process.gaps.get("sm_utilization") == "pending":
            return True  # the driver has samples of others and none of this one: it did nothing
        # all the work that is seen is that of the only process; of several, it cannot be told
        return False if use is not None and len(gpu.processes) == 1 else None


class UnusedAllocation(Lasting):
    """A GPU that was given to a batch job, and that nobody uses."""

    name = "allocation_unused"
    settings = {"for": (duration, 900.0), "clear_for": (duration, 0.0)}
    wanted = Wanted(gpu=("job", "job_user", "utilization", "memory_used"), process=USERS)

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._given: dict[str, str] = {}  # job by UUID

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            if gpu.job is None:
                continue
            before = self._given.pop(uuid, "")
            if before and before != gpu.job:
                event = sample.event("allocation-unused", uuid, note=before)
                yield Finding(uuid, None, what=before, over=True, event=event)
            if gpu.job:
                self._given[uuid] = gpu.job
                used = _in_use(gpu, gpu)
                values: dict[str, float | str] = {"idle": self.value("for")}
                values |= {"user": gpu.job_user} if gpu.job_user else {}
                event = sample.event("allocation-unused", uuid, note=gpu.job, values=values)
                yield Finding(uuid, None if used is None else not used, what=gpu.job, event=event)


class JobFinished(AlertRule):
    """A process that held memory for a good while and has ended; those of one sample with the same name and user are one job."""

    name = "job_finished"
    settings = {"memory": (size, float(1 << 30)), "for": (duration, 300.0)}
    wanted = Wanted(gpu=("memory_percent",), process=("pid", "name", "user", "memory_used", "running_time"))

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._ran_out: set[str] = set()  # PIDs

    def observe(self, sample: RuleInput) -> Iterator[Transition]:
        told = (event.process for event in sample.events if event.kind == "out-of-memory")
        self._ran_out.update(f"{process.pid:.0f}" for process in told if process is not None)
        jobs: dict[tuple[str | None, str | None], list[HolderProcess]] = {}
        ended = {holder.pid for holder in sample.holders.ended} - {holder.pid for holder in sample.holders.present()}
        for holder in sample.holders.ended:
            long = sample.now - holder.since >= self.value("for")
            if long and holder.most >= self.value("memory") and holder.pid in ended:
                jobs.setdefault((holder.process.name, holder.process.user), []).append(holder)
        for holders in jobs.values():
            yield self._fire(holders, sample)
        self._ran_out -= {holder.pid for holder in sample.holders.ended}

    def _fire(self, holders: list[HolderProcess], sample: RuleInput) -> Transition:
        first, pids = holders[0], list(dict.fromkeys(holder.pid for holder in holders))
        seconds = max(holder.process.running_time or sample.now - holder.since for holder in holders)
        gpus = tuple(dict.fromkeys(holder.number or "?" for holder in holders))
        kind = "process-end" if self._ran_out.isdisjoint(pids) else "out-of-memory"
        held = sum(holder.most for holder in holders)
        values: dict[str, float | str] = {"seconds": seconds, "memory_used": held, "pids": " ".join(pids)}
        values |= {"gpus": ", ".join(gpus), "more": len(pids) - 1}
        event = first.event(sample.snapshot.time, kind, value=held, values=values)
        event = event.replace(gpus=gpus, uuids=tuple(dict.fromkeys(holder.uuid for holder in holders)))
        return self.told_once(event, first.pid)


class GpuFree(AlertRule):
    """A GPU, or an instance of one, that was in use for a while and now nobody uses."""

    name = "gpu_free"
    settings = {"used": (duration, 60.0), "for": (duration, 30.0)}
    wanted = Wanted(gpu=("utilization", "memory_used", "memory_total"), process=("pid", "memory_used", "type"))

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._uses: dict[str, Latch] = {}

    def observe(self, sample: RuleInput) -> Iterator[Transition]:
        for uuid, gpu in sample.all():
            if gpu.instances:
                continue
            used = _in_use(gpu, sample.whole(uuid))
            free = None if used is None else not used
            latch = self._uses.setdefault(uuid, Latch())
            if latch.step(sample.now, used, free, self.value("used"), self.value("for")) is False:
                values = {} if gpu.memory_total is None else {"memory_total": gpu.memory_total}
                event = sample.event("gpu-free", uuid, value=gpu.memory_total, values=values, note=sample.note(uuid))
                yield self.told_once(event)


def _in_use(gpu: Gpu, whole: Gpu) -> bool | None:
    """Tell whether anybody uses it; None where that cannot be told."""
    if whole.state not in ("ok", "asleep"):
        return None
    if any(process.type != "G" for process in gpu.processes):
        return True
    if whole.state == "asleep":
        return False
    if "processes" in whole.gaps or (gpu.memory_used is None and gpu.utilization is None):
        return None
    return unlisted_memory(gpu) > UNLISTED or (gpu.utilization or 0.0) >= _BUSY


class Stalled(Lasting):
    """A GPU that was used for `used` seconds and has been at 0 % for `for`, while the same process holds its memory.

    CPU time of the program is no excuse: one that waits for data, for a lock or for another rank is stalled all the same.
    """

    name = "stalled"
    settings = {"used": (duration, 30.0), "for": (duration, 180.0), "clear_for": (duration, 5.0)}
    wanted = Wanted(gpu=("utilization", "sm_active"), process=(*USERS, "running_time"))

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._used: dict[tuple[str, str], float] = {}  # seconds of use, by GPU and process
        self._last: float | None = None

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        seconds = 0.0 if self._last is None else sample.now - self._last
        self._last = sample.now
        yield from sample.ended(self._used)
        for gpu in [*sample.gpus.values(), *(instance for _, instance in sample.instances.values())]:
            holders = [holder for holder in sample.holders.on(gpu) if holder.process.type != "G"]
            use = gpu.utilization if gpu.utilization is not None else gpu.sm_active
            if holders and use is not None:  # with several, the utilization is that of all of them
                yield self._finding(holders[0], use, seconds, sample.snapshot.time)

    def _finding(self, holder: HolderProcess, use: float, seconds: float, time: float) -> Finding:
        key = holder.uuid, holder.pid
        used = self._used[key] = self._used.get(key, 0.0) + (seconds if use >= _BUSY else 0.0)
        event = holder.event(time, "stalled", values={"idle": self.value("for")})
        return Finding(holder.uuid, use < 1 and used >= self.value("used"), use >= 1, event=event, what=holder.pid)


_AWAY = 60.0  # seconds without a word of a server after which it has ended


class _OfServers(Lasting):
    """A rule about one figure of each server: at or above a value it holds. Several servers may share a GPU."""

    key = ""
    kind = ""
    wanted = Wanted(serving=True)

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._seen: dict[str, tuple[float, Event]] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for server in sample.snapshot.serving:
            value = server.get(self.key)
            known = isinstance(value, (int, float))
            holds = self.holds(server) if known else None
            values: dict[str, float | str] = {"above": self.value("above")}
            event = self._event(sample, server, value if known else None, values)
            self._seen[server.key] = sample.now, event
            yield Finding(_place(event), holds, event=event, what=server.key)
        for key, (seen, event) in [*self._seen.items()]:
            if sample.now - seen >= _AWAY:
                del self._seen[key]
                ended = event.replace(time=sample.snapshot.time, kind="server-ended", value=None)
                yield Finding(_place(event), None, event=ended, what=key, over=True)

    def holds(self, server: Server) -> bool:
        """Return whether a server is beyond the threshold."""
        value = server.get(self.key)
        return isinstance(value, (int, float)) and value >= self.value("above")

    def _event(self, sample: RuleInput, server: Server, value: object, values: dict[str, float | str]) -> Event:
        uuids = self._places(server)
        labels = [
            number_of(gpu) or "?"
            for gpu in sample.snapshot.gpus
            if any(part.uuid in uuids for part in (gpu, *gpu.instances))
        ]
        figure = float(value) if isinstance(value, (int, float)) else None
        note = server.model or server.server or ""
        return Event(
            sample.snapshot.time, self.kind, tuple(labels), uuids=uuids, value=figure, values=values, note=note
        )

    def _places(self, server: Server) -> tuple[str, ...]:
        """Return the GPUs of a server; the one that an active alert is known by comes first and stays, even if it was lost."""
        active = (uuid for (uuid, what), one in self._watched.items() if what == server.key and one.latch.active)
        first = next(active, None)
        if first is None:
            return server.gpus or ()
        return tuple(dict.fromkeys((first, *(server.gpus or ())))) if first else ()


def _place(event: Event) -> str:
    return event.uuids[0] if event.uuids else ""


class ServingQueue(_OfServers):
    """More requests wait than a server should have waiting."""

    name, key, kind = "serving_queue", "waiting", "serving-queue-long"
    settings = {"above": (number, 50.0), "for": (duration, 120.0), "clear_for": (duration, 60.0)}


class ServingFirstToken(_OfServers):
    """The first token comes late: the 95th percentile of the last minute."""

    name, key, kind = "serving_first_token", "first_token_p95", "serving-slow"
    settings = {"above": (number, 10.0), "for": (duration, 120.0), "clear_for": (duration, 60.0)}


class ServingErrors(_OfServers):
    """Requests fail."""

    name, key, kind = "serving_errors", "error_rate", "serving-errors"
    settings = {"above": (number, 0.1), "for": (duration, 60.0), "clear_for": (duration, 60.0)}


class ServingStuck(_OfServers):
    """A server has requests and has made no token for a while."""

    name, key, kind = "serving_stuck", "idle_time", "serving-stuck"
    settings = {"above": (duration, STUCK_AFTER), "for": (duration, 60.0), "clear_for": (duration, 0.0)}

    def holds(self, server: Server) -> bool:
        return activity(server) == "stuck" and super().holds(server)


class Diagnosed(Lasting):
    """A GPU or MIG instance whose verdict has been one that calls for a change for long. Judges the last minute every ten seconds."""

    name = "diagnosis"
    settings = {"for": (duration, 600.0), "clear_for": (duration, 120.0)}
    wanted = WANTED

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._live = LiveDiagnosis()

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        self._live.add(sample.snapshot)
        for uuid, _ in sample.all():
            verdict = self._live.verdict(uuid)
            if verdict is None:
                continue
            values: dict[str, float | str] = {"verdict": verdict.key, "confidence": verdict.confidence}
            event = Event(sample.snapshot.time, "verdict", (verdict.label,), uuids=(uuid,), values=values)
            yield Finding(uuid, None if verdict.key == "unknown" else self.tells(verdict), event=event)

    def tells(self, verdict: Verdict) -> bool:
        """Return whether a verdict calls for a change and is told by no other rule."""
        condition = of_verdict(verdict.key)
        return condition is not None and condition.alert == self.name and condition.severity() in BAD
