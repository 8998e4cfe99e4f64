"""The rules together: every sample goes to all of them, with the processes that hold memory, and active alerts are known."""

from __future__ import annotations

from ...model.event import Event
from ...model.identity import GpuIdentities, rename
from ...model.select import Wanted
from ...model.serving import preallocates
from ...model.snapshot import Cadence
from ..events import EventDetector
from ..readings import is_another, number_of
from .rule import RuleInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from ...model.catalog import Gpu, Process
    from ...model.snapshot import Snapshot
    from ..events import RecordedClock
    from .rule import AlertRule
    from .transition import Transition

    Explain: TypeAlias = Callable[[Event, Snapshot], Mapping[str, float | str]]


class RuleSet:
    """Rules over snapshots in the order of their times. `observe` is for one thread; `active` may be read by any.

    `active` are the alerts that last, oldest first, each with the time at which it fired and how it stands now, `events` what else
    happened at the last sample. `wanted` is what the rules have to be shown. A rule that raises an error is told to `failed`, and the
    others go on. `explain` is asked for more values of an alert about a program that hangs, when it fires. `clock` is that of a live
    machine.
    """

    def __init__(
        self,
        rules: Sequence[AlertRule],
        failed: Callable[[str, Exception], None] | None = None,
        explain: Explain | None = None,
        clock: RecordedClock | None = None,
    ) -> None:
        self._identities = GpuIdentities()
        self._rules = tuple(rules)
        self._failed = failed
        self._explain = explain
        self._time = WatchedTime()
        self._holders = Holders()
        self._detector = EventDetector(clock)
        self.events: Sequence[Event] = ()
        self._active: dict[tuple[str, str, str], Transition] = {}
        self.active: tuple[Transition, ...] = ()
        self.wanted = Wanted(("uuid", "index", "name"))
        for rule in self._rules:
            self.wanted |= rule.wanted

    def resume(self, alerts: Iterable[Transition], gpus: object = ()) -> list[Transition]:
        """Go on with alerts that were active before a restart; return those that belong to no rule any more.

        `gpus` are the GPUs of that time, as GpuIdentities gives them.
        """
        self._identities.remember(gpus)
        rules = {rule.name: rule for rule in self._rules}
        strange = []
        for alert in alerts:
            if (rule := rules.get(alert.rule)) is None:
                strange.append(alert)
                continue
            rule.resume(alert)
            self._identities.expect(alert.uuid)
            self._active[alert.key] = alert
        self.active = tuple(self._active.values())
        return strange

    def observe(self, snapshot: Snapshot) -> list[Transition]:
        """Take a sample and return what turned, in the order of the rules."""
        now = self._time.advance(snapshot.time)
        self.events = self._detector.observe(snapshot)
        sample = RuleInput(snapshot, now, self._holders, self.events, self._detector.links, self._identities)
        turned = self._rename(sample)
        self._holders.observe(list(sample.gpus.items()), now, snapshot.time)
        for rule in self._rules:
            try:
                turned += rule.observe(sample)
            except Exception as error:
                if self._failed is None:
                    raise
                self._failed(rule.name, error)
        for transition in turned:
            if transition.state == "fire" and self._explain is not None and hangs(transition.event):
                self._add_explanation(transition, snapshot)
            if transition.state == "clear":
                fired = self._active.pop(transition.key, transition)
                transition.known_as = transition.known_as or fired.known_as
            elif not transition.once:
                self._active[transition.key] = transition
        if turned or self._active:
            self.active = tuple(self._renewed(fired) for fired in self._active.values())
        return turned

    def _rename(self, sample: RuleInput) -> list[Transition]:
        """Go on with alerts of GPUs that were known by their place under the UUID; end those that the UUID has, too."""
        if not sample.renamed:
            return []
        self._holders.rename(sample.renamed)
        for rule in self._rules:
            rule.rename(sample.renamed)
        ended = []
        for old in [alert for alert in self._active.values() if alert.uuid in sample.renamed]:
            del self._active[old.key]
            new = old.moved(sample.renamed[old.uuid])
            if new.key in self._active:
                ended.append(old.replace(event=old.event.replace(time=sample.snapshot.time, alert="clear")))
            else:
                self._active[new.key] = new
        return ended

    def _add_explanation(self, transition: Transition, snapshot: Snapshot) -> None:
        assert self._explain is not None
        try:
            values = {**transition.event.values, **self._explain(transition.event, snapshot)}
            transition.event = transition.event.replace(values=values)
        except Exception as error:  # the alert is told without it
            if self._failed is None:
                raise
            self._failed(transition.rule, error)

    def _renewed(self, fired: Transition) -> Transition:
        """Return an active alert with what its rule saw last."""
        rule = next((rule for rule in self._rules if rule.name == fired.rule), None)
        standing = None if rule is None else rule.standing(fired.uuid, fired.what)
        return fired if standing is None else fired.renewed(standing)


def hangs(event: Event) -> bool:
    """Return whether an alert is about a program that gets nothing done."""
    return event.kind == "stalled" or event.values.get("verdict") == "hang"


# Part of all the memory that only a framework which takes it ahead takes in one go: JAX 75 %, TensorFlow all
_GRAB = 0.6
_QUICK = 15.0  # seconds between samples that still tell one go from growth
_MINUTE = 60.0
_GROWN = 0.02  # part of all the memory; by growing this much a process shows that it had not taken it ahead
_GONE = 2  # looks without a process after which it has ended: a list of the driver may miss one once


class HolderProcess:
    """One process on one GPU, `uuid`, or on the instance of it that `gpu` is. `since` is the watched time of its first sample.

    `most` is the most bytes it held, `number` what the GPU is called, `missed` counts looks without it. `ahead` tells
    whether it took its memory ahead of need, so that a full GPU says nothing. `cpu` is its share of a core, or that of it and all its
    workers, over the last minute or so.
    """

    __slots__ = (
        "_base", "_looked", "_seen", "ahead", "cpu", "gpu", "held", "missed", "most", "number", "pid", "process", "since", "uuid",
    )  # fmt: skip

    def __init__(self, uuid: str, whole: Gpu, gpu: Gpu, process: Process, now: float) -> None:
        self.uuid = uuid
        self.pid = f"{process.pid or 0:.0f}"
        self.since = now
        self.held: float | None = None
        self.cpu: float | None = None
        self.most = 0.0
        self.ahead = False
        self.missed = 0
        self._base = 0.0  # bytes it held just after it took most of the memory
        self._looked = self._seen = now
        self.see(whole, gpu, process, now)

    def see(self, whole: Gpu, gpu: Gpu, process: Process, now: float) -> None:
        """Take one more sample of it; a sample that does not say what it holds leaves that as it was."""
        self.number = number_of(whole)
        self.gpu, self.process, self.missed = gpu, process, 0
        self._smooth(process, now)
        held, total = process.memory_used, gpu.memory_total
        if held is None:
            return
        if total:
            # one that is met with most of the memory has taken it ahead, as far as anybody can tell
            first = self.held is None
            if held - (self.held or 0.0) >= _GRAB * total and (first or now - self._seen <= _QUICK):
                self.ahead, self._base = True, held
            elif self.ahead and held - self._base > _GROWN * total:
                self.ahead = False
        self.held, self.most, self._seen = held, max(self.most, held), now

    def _smooth(self, process: Process, now: float) -> None:
        cpu = process.cpu_percent if process.tree_cpu_percent is None else process.tree_cpu_percent
        if cpu is not None:  # a blip of one sample is no work
            weight = min(1.0, (now - self._looked) / _MINUTE)
            self.cpu = cpu if self.cpu is None else self.cpu + weight * (cpu - self.cpu)
        self._looked = now

    @property
    def takes_ahead(self) -> bool:
        """Whether what it holds says nothing about what it needs."""
        return self.ahead or preallocates(self.process)

    def event(self, time: float, kind: str, **fields: Any) -> Event:
        """Return an event of this process."""
        return Event(time, kind, (self.number or "?",), uuids=(self.uuid,), process=self.process, **fields)


class Holders:
    """All processes on all GPUs. A GPU that says nothing of its processes leaves them as they were."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, float], HolderProcess] = {}
        self._listed: dict[str, float] = {}  # when each GPU last told its processes, in seconds since 1970
        self.ended: list[HolderProcess] = []

    def observe(self, gpus: Sequence[tuple[str, Gpu]], now: float, time: float) -> None:
        """Take a sample at whole GPUs by UUID; afterwards `ended` holds the processes that are found to be gone."""
        self.ended = []
        for uuid, gpu in gpus:
            if gpu.state in ("ok", "asleep") and "processes" not in gpu.gaps:
                self._compare(uuid, gpu, now, time - self._listed.get(uuid, time))
                self._listed[uuid] = time

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Take over that GPUs which were known by their place tell their UUID now."""
        rename(self._holders, renamed)
        rename(self._listed, renamed)
        for holder in self._holders.values():
            holder.uuid = renamed.get(holder.uuid, holder.uuid)

    def present(self) -> Iterator[HolderProcess]:
        """Walk the processes that were there at the last sample."""
        return (holder for holder in self._holders.values() if not holder.missed)

    def on(self, gpu: Gpu) -> list[HolderProcess]:
        """Return the processes that the last sample found on a GPU, or in an instance, biggest first."""
        found = [holder for holder in self.present() if holder.gpu is gpu]
        return sorted(found, key=lambda holder: -(holder.held or 0.0))

    def _compare(self, uuid: str, gpu: Gpu, now: float, elapsed: float) -> None:
        parts = (gpu, *gpu.instances)
        there = {
            process.pid: (part, process) for part in parts for process in part.processes if process.pid is not None
        }
        for pid, (part, process) in there.items():
            old = self._holders.get((uuid, pid))
            if old is not None and not is_another(old.process, process, elapsed):
                old.see(gpu, part, process, now)
                continue
            if old is not None:
                self.ended.append(old)
            self._holders[uuid, pid] = HolderProcess(uuid, gpu, part, process, now)
        for key, holder in list(self._holders.items()):
            if key[0] == uuid and key[1] not in there:
                holder.missed += 1
                if holder.missed >= _GONE:
                    self.ended.append(self._holders.pop(key))


_LONG = 60.0  # seconds between the first two samples that are a hole


class WatchedTime:
    """Turns the times of samples into seconds watched: a long hole counts as one usual interval, a clock set back as none."""

    __slots__ = ("_cadence", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._cadence = Cadence(first=_LONG)

    def advance(self, time: float) -> float:
        """Take the time of a sample, in seconds since 1970, and return the seconds watched until it."""
        self.now += self._cadence.next(time)[0]
        return self.now
