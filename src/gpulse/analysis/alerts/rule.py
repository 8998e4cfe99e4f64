"""Alert rules: each takes samples and returns transitions; most only report what they see, and a latch does the rest."""

from __future__ import annotations

from math import nan

from ...model.catalog import DOWN
from ...model.event import Event
from ...model.identity import GpuIdentities, rename
from ...model.select import Wanted
from ...units import parse_duration, parse_size
from ...value import Value, fresh
from ..readings import is_another, number_of
from .latch import Latch
from .transition import Standing, Transition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .rule_set import Holders

    Setting: TypeAlias = "tuple[Callable[[Any], float], float | None]"


_SILENT = 900.0  # seconds after a restart in which a rule that still sees the condition has said so


def number(value: Any) -> float:
    """Read a number of a configuration; raise ValueError saying what it should be."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        raise ValueError("a number")
    return float(value)


def duration(value: Any) -> float:
    """Read seconds, given as a number or as 30s, 10m or 2h."""
    if isinstance(value, str):
        return parse_duration(value)
    if number(value) < 0:
        raise ValueError("a duration such as 30s, 10m or 2h")
    return float(value)


def size(value: Any) -> float:
    """Read bytes, given as a number or as 512MiB or 2GiB."""
    return parse_size(value) if isinstance(value, str) else number(value)


class RuleInput:
    """One snapshot as rules see it: `now` in seconds watched, `gpus` by key, `instances` those of MIG, `holders` the processes.

    `events` is what happened since the snapshot before, `links` what is wrong with links now, as events that last. `renamed` and
    `replaced` are those of GpuIdentities: GPUs whose UUID became known, and GPUs whose slot has another one now.
    """

    __slots__ = ("events", "gpus", "holders", "instances", "links", "now", "renamed", "replaced", "snapshot")

    def __init__(
        self,
        snapshot: Snapshot,
        now: float,
        holders: Holders,
        events: Sequence[Event] = (),
        links: Sequence[Event] = (),
        identities: GpuIdentities | None = None,
    ) -> None:
        self.events = events
        self.links = links
        self.snapshot = snapshot
        self.now = now
        self.holders = holders
        self.gpus: dict[str, Gpu] = {}
        self.instances: dict[str, tuple[str, Gpu]] = {}  # with the UUID of the whole GPU
        identities = identities or GpuIdentities()
        for uuid, gpu in zip(identities.keys(snapshot.gpus), snapshot.gpus, strict=True):
            self.gpus.setdefault(uuid, gpu)
            for part, instance in enumerate(gpu.instances):
                self.instances.setdefault(instance.uuid or f"{uuid}/{part}", (uuid, instance))
        self.renamed = identities.renamed
        self.replaced = identities.replaced

    def event(self, kind: str, uuid: str, **fields: Any) -> Event:
        """Return an event of a GPU or MIG instance at the time of this sample."""
        return Event(self.snapshot.time, kind, (self._number(uuid),), uuids=(uuid,), **fields)

    def _number(self, uuid: str) -> str:
        return number_of(self.gpus[uuid] if uuid in self.gpus else self.whole(uuid)) or "?"

    def whole(self, uuid: str) -> Gpu:
        """Return a GPU, or the one that an instance is part of."""
        return self.gpus[self.instances[uuid][0] if uuid in self.instances else uuid]

    def name(self, uuid: str) -> str:
        """Return what a GPU or MIG instance is called in a sentence."""
        name = f"GPU {self._number(uuid)}"
        return name if uuid in self.gpus else f"{name} {self.instances[uuid][1].name or 'MIG'}"

    def note(self, uuid: str) -> str:
        """Return what a MIG instance is called; empty for a whole GPU."""
        return self.name(uuid) if uuid in self.instances else ""

    def ended(self, known: dict[tuple[str, str], Any] | None = None) -> Iterator[Finding]:
        """Find that processes have ended, of those that are `known`, which forgets them; all of them without."""
        for holder in self.holders.ended:
            if known is None or known.pop((holder.uuid, holder.pid), None) is not None:
                event = holder.event(self.snapshot.time, "process-end", value=holder.most)
                yield Finding(holder.uuid, None, what=holder.pid, over=True, event=event)

    def answers(self, uuid: str) -> bool:
        """Tell whether a GPU responds, so that what is known of its processes is of now."""
        gpu = self.gpus.get(uuid)
        return gpu is not None and gpu.state not in DOWN

    def happened(self, kind: str, uuid: str, gpu: Gpu) -> list[Event]:
        """Return the events of one kind that are about a GPU."""
        name = number_of(gpu) or "?"
        return [one for one in self.events if one.kind == kind and one.is_about(uuid, name)]

    def all(self) -> Iterator[tuple[str, Gpu]]:
        """Walk whole GPUs and instances by UUID."""
        yield from self.gpus.items()
        yield from ((uuid, part) for uuid, (_, part) in self.instances.items() if uuid not in self.gpus)


class Finding(Value):
    """What one sample shows of one thing: whether the alert's condition holds and whether all is well; None if unknown.

    `calm` is the opposite of `holds` where it is not given. `event` describes the condition as it is now. `over` ends the alert at
    once: the thing itself is gone. `patience` replaces the rule's own. `began` is when it began to hold, if not with this sample.
    """

    uuid: str
    holds: bool | None
    calm: bool | None = None
    event: Event | None = None
    what: str = ""
    patience: float | None = None
    over: bool = False
    began: float | None = None

    @property
    def is_calm(self) -> bool | None:
        """Whether all is well."""
        return not self.holds if self.calm is None and self.holds is not None else self.calm


class AlertRule:
    """One rule. `settings` says which keys its table takes, how each is read and what it is when not given.

    `wanted` is what it has to be shown. `severity` is empty for a rule whose alerts are as bad as their condition.
    `observe` is called with samples in order, from one thread.
    """

    name = ""
    severity = ""
    settings: Mapping[str, Setting] = {}
    wanted = Wanted()

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        self._set = {key: default for key, (_, default) in self.settings.items()} | dict(given or {})

    def given(self, key: str) -> float | None:
        """Return a setting; None where it has no default and was not given."""
        return self._set.get(key)

    def value(self, key: str) -> float:
        """Return a setting, 0 in place of None."""
        return self._set.get(key) or 0.0

    def observe(self, sample: RuleInput) -> Iterable[Transition]:
        """Take a sample and return what turned."""
        raise NotImplementedError

    def standing(self, uuid: str, what: str) -> Standing | None:
        """Return how an active alert stands; None where nothing newer than its fire is known."""
        return None

    def resume(self, alert: Transition) -> None:
        """Go on with an alert that was active before a restart, so that it is not told again and clears when it is over."""

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Take over that GPUs which were known by their place tell their UUID now: what rules keep of GPUs is in dicts by key."""
        for kept in vars(self).values():
            if isinstance(kept, dict):
                rename(kept, renamed)

    def told_once(self, event: Event, what: str = "") -> Transition:
        """Return the alert about something that happened and does not last."""
        event = event.replace(rule=self.name, alert="fire", severity=self.severity or event.severity)
        return Transition(event, what, once=True)


class _Watched(Value):
    """One thing that a rule watches: its latch, what was seen of it, and how bad its alert is."""

    latch: Latch = fresh(factory=Latch)
    holds: bool = False  # as far as is known
    began: float | None = None  # when it began to hold
    last: Event | None = None  # when it last held
    now: Event | None = None
    severity: str = ""

    def see(self, finding: Finding) -> None:
        if finding.event is not None and finding.holds is not None:
            if finding.holds and not self.holds:
                self.began = finding.event.time if finding.began is None else finding.began
            self.holds, self.now = finding.holds, finding.event
            self.last = finding.event if finding.holds else self.last


class Lasting(AlertRule):
    """A rule whose alerts last: `findings` says what there is, latches make turns of it."""

    slack = 0.0
    settings: Mapping[str, Setting] = {"for": (duration, 0.0), "clear_for": (duration, 30.0)}

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._parents: dict[str, str] = {}  # MIG instances that were seen
        self._resumed: dict[tuple[str, str], Event] = {}  # active before a restart, and not seen since
        self._now = 0.0

    def findings(self, sample: RuleInput) -> Iterable[Finding]:
        """Say what a sample shows; things that are not mentioned stay as they are."""
        raise NotImplementedError

    def observe(self, sample: RuleInput) -> Iterator[Transition]:
        self._now = sample.now
        for finding in [*self.findings(sample), *self._dissolved(sample), *self._vanished(sample)]:
            key = finding.uuid, finding.what
            self._resumed.pop(key, None)
            if finding.over:
                watched = self._watched.pop(key, None)
                if watched is not None and watched.latch.active and finding.event is not None:
                    yield self._turn(finding.event, watched, False, finding.what)
                continue
            watched = self._watched.setdefault(key, _Watched())
            watched.see(finding)
            patience = self.value("for") if finding.patience is None else finding.patience
            clear_for = self.value("clear_for")
            turn = watched.latch.step(sample.now, finding.holds, finding.is_calm, patience, clear_for, self.slack)
            if turn is not None and finding.event is not None:
                yield self._turn(finding.event, watched, turn, finding.what)

    def _turn(self, event: Event, watched: _Watched, fires: bool, what: str) -> Transition:
        if fires:
            watched.severity = self.severity or event.severity
        last = nan if fires or watched.last is None else watched.last.time
        event = event.replace(rule=self.name, alert="fire" if fires else "clear", severity=watched.severity)
        began = watched.began if fires else None
        return Transition(event, what, last_true=last, repeats=watched.latch.times(self._now), began=began)

    def standing(self, uuid: str, what: str) -> Standing | None:
        watched = self._watched.get((uuid, what))
        if watched is None or watched.last is None or watched.now is None:
            return None
        return Standing(watched.last, watched.now, watched.holds, watched.latch.times(self._now))

    def resume(self, alert: Transition) -> None:
        watched = self._watched.setdefault((alert.uuid, alert.what), _Watched())
        watched.latch.resume()
        watched.severity, watched.last, watched.now, watched.holds = alert.severity, alert.event, alert.event, True
        self._resumed[alert.uuid, alert.what] = alert.event

    def _vanished(self, sample: RuleInput) -> list[Finding]:
        """Find alerts from before a restart whose process has ended since, or that nothing is said of for long."""
        found = []
        for (uuid, what), event in self._resumed.items():
            gpu, process = sample.gpus.get(uuid), event.process
            listed = gpu is not None and gpu.state == "ok" and "processes" not in gpu.gaps
            there = {one.pid: one for one in gpu.all_processes()} if gpu is not None and listed else {}
            now = None if process is None else there.get(process.pid)
            elapsed = sample.snapshot.time - event.time
            gone = listed and process is not None and (now is None or is_another(process, now, elapsed))
            if gone or sample.now >= _SILENT:
                event = event.replace(time=sample.snapshot.time, kind="process-end" if gone else event.kind)
                found.append(Finding(uuid, None, what=what, over=True, event=event))
        return found

    def _dissolved(self, sample: RuleInput) -> list[Finding]:
        """Find MIG instances that are no more although their GPU is there: nothing will ever be said of them again."""
        gone = [uuid for uuid, whole in self._parents.items() if uuid not in sample.instances and whole in sample.gpus]
        self._parents = {uuid: whole for uuid, whole in self._parents.items() if uuid not in gone}
        self._parents.update((uuid, whole) for uuid, (whole, _) in sample.instances.items())
        events = {uuid: Event(sample.snapshot.time, "instance-removed", uuids=(uuid,)) for uuid in gone}
        return [
            Finding(uuid, None, what=what, over=True, event=events[uuid])
            for uuid, what in self._watched
            if uuid in gone
        ]
