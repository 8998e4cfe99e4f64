"""Alerts that fire and clear, and the desk that decides which of them people are told, and how often."""

from __future__ import annotations

import zlib
from math import nan

from ...model.event import Event, Silence
from ...model.when import within
from ...value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ...model.when import Hours


class Standing(Value):
    """How an active alert stands: `last` is its condition as it last held, `now` as it is, and `holds` whether it still does."""

    last: Event
    now: Event
    holds: bool
    repeats: int


class Transition(Value):
    """One turn of one alert, which is known by (rule, uuid, what).

    `event` is what happened, with `rule` and `alert` ("fire" or "clear") set. `what` tells alerts of one rule on one GPU apart: a PID,
    an XID code. `once` is true for something that happened rather than lasts: no clear follows. `last_true` is when the condition
    last held, `repeats` how many times it began to hold in the last half hour. An active alert has `standing`.
    """

    event: Event
    what: str = ""
    once: bool = False
    last_true: float = nan  # the time of the event, if it is not given
    repeats: int = 1
    standing: Standing | None = None
    began: float | None = None  # when its condition began, if that is known
    known_as: str = ""  # its id, if the UUID of its GPU became known after it fired

    def __post_init__(self) -> None:
        if self.last_true != self.last_true:
            self.last_true = self.event.time

    def renewed(self, standing: Standing) -> Transition:
        """Return the same alert, fired at the same time, with its condition as it was when it last held, and as it is now."""
        fired = self.event
        changes = {"time": fired.time, "rule": fired.rule, "alert": fired.alert, "severity": fired.severity}
        values = {**fired.values, **standing.last.values}
        if isinstance(idle := values.get("idle"), (int, float)):  # by then; since, it has lasted on
            values["idle"] = idle + standing.last.time - fired.time
        known = (
            fired.uuids if fired.uuids[:1] != standing.last.uuids[:1] else standing.last.uuids
        )  # it was seen by its place
        event = standing.last.replace(**changes, values=values, uuids=known)
        return self.replace(event=event, last_true=standing.last.time, repeats=standing.repeats, standing=standing)

    @property
    def rule(self) -> str:
        """The rule that turned."""
        return self.event.rule

    @property
    def state(self) -> str:
        """fire or clear."""
        return self.event.alert

    @property
    def severity(self) -> str:
        """info, warn or critical."""
        return self.event.severity

    @property
    def uuid(self) -> str:
        """The GPU it is about; empty for the machine itself."""
        return self.event.uuids[0] if self.event.uuids else ""

    @property
    def gpu(self) -> str:
        """The number people call the GPU by; empty where it has none."""
        return self.event.gpus[0] if self.event.gpus and self.event.gpus[0] != "?" else ""

    @property
    def time(self) -> float:
        """Seconds since 1970."""
        return self.event.time

    @property
    def since(self) -> float:
        """When its condition began: before it fired, where it had to last for a while."""
        idle = self.values.get("idle")
        if isinstance(idle, (int, float)):
            return self.last_true - idle
        return self.time if self.began is None else min(self.began, self.time)

    @property
    def values(self) -> Mapping[str, float | str]:
        """Numbers and texts by name, in stored units."""
        return self.event.values

    @property
    def key(self) -> tuple[str, str, str]:
        """What the alert is known by."""
        return self.rule, self.uuid, self.what

    @property
    def id(self) -> str:
        """What people call the alert by on a command line: six characters, the same for as long as it lasts."""
        return self.known_as or f"{zlib.crc32(repr(self.key).encode()):08x}"[:6]

    def moved(self, uuid: str) -> Transition:
        """Return the same alert, with the same id, of a GPU whose UUID became known after it fired."""
        event = self.event.replace(uuids=(uuid, *self.event.uuids[1:]))
        return self.replace(event=event, known_as=self.id)

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON takes it, for `from_plain`."""
        plain = {"event": self.event.to_plain(), "what": self.what, "once": self.once, "known_as": self.known_as}
        return plain | {"last_true": self.last_true, "repeats": self.repeats, "began": self.began}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Transition:
        """Return a transition of plain data; raises KeyError, TypeError or ValueError for what is none."""
        event = Event.from_plain(plain["event"])
        last, repeats = float(plain["last_true"]), int(plain["repeats"])
        known_as, began = str(plain.get("known_as") or ""), plain.get("began")
        return cls(
            event,
            str(plain["what"]),
            bool(plain["once"]),
            last_true=last,
            repeats=repeats,
            began=None if began is None else float(began),
            known_as=known_as,
        )


GROUP_WAIT = 5.0
_KEPT = 1000  # alerts in the file of a server that sees more than anybody can read


class Notice(Value):
    """One message: alerts of one rule that turned together. `kind` is fire, clear, repeat, ack, refresh or test.

    `active` counts the alerts of this rule that people know of and that still last. `held` counts earlier alerts that the
    rate limit kept back, `last` says that it keeps back what follows.
    """

    kind: str
    time: float
    alerts: Sequence[Transition]
    active: int = 0
    held: int = 0
    last: bool = False

    @property
    def ends(self) -> bool:
        """Whether it says that something is over."""
        return self.kind == "clear"


class TellingPolicy(Value):
    """When people are told. Alerts of a rule within `wait` seconds are one message; `repeat` is after how long what lasts is told
    again, 0 for never. In `quiet` hours only what is critical is told, in those of `maintenance` nothing; the rest follows after.
    """

    wait: float = GROUP_WAIT
    repeat: float = 0.0
    quiet: Sequence[Hours] = ()
    maintenance: Sequence[Hours] = ()

    def mutes(self, event: Event, now: float) -> bool:
        """Tell whether an alert has to wait until some hours are over."""
        return within(self.maintenance, now) or (event.severity != "critical" and within(self.quiet, now))


class _Entry(Value):
    """An alert that lasts, or one that nobody was told of yet: when people were told, and who has acknowledged it when."""

    alert: Transition
    told: float | None = None
    acknowledged: Mapping[str, Any] | None = None
    grouped: bool = False


class _Group(Value):
    since: float
    alerts: list[Transition] = fresh(factory=list)


class Desk:
    """Takes what turned and gives messages. For one thread; `standing` may be asked by any."""

    def __init__(self, policy: TellingPolicy | None = None) -> None:
        self.policy = policy or TellingPolicy()
        self.silences: tuple[Silence, ...] = ()
        self._entries: dict[tuple[object, ...], _Entry] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self.changed = False  # whether what `to_plain` returns is new

    def take(self, turned: Iterable[Transition], active: Iterable[Transition], now: float) -> list[Notice]:
        """Take what turned at a time, and what is active as it is now; return the messages that are due."""
        turned, fresh = list(turned), {alert.key: alert for alert in active}
        self._follow((*turned, *fresh.values()))
        for alert in turned:
            self._turn(alert, now)
        for key, entry in list(self._entries.items()):
            self._consider(key, entry, fresh.get(entry.alert.key, entry.alert), now)
        due = [kind for kind, group in self._groups.items() if not 0 <= now - group.since < self.policy.wait]
        return [self._released(*kind, now) for kind in due]

    def flush(self, now: float) -> list[Notice]:
        """Return the messages that still wait for more of their kind."""
        return [self._released(*kind, now) for kind in [*self._groups]]

    def acknowledge(self, id: str, by: str, time: float) -> Notice | None:
        """Have an active alert not told again; return what to tell other systems, None for one that is not known."""
        for entry in self._entries.values():
            if entry.alert.id == id and not entry.alert.once and entry.acknowledged is None:
                entry.acknowledged = {"by": by, "time": time}
                self.changed = True
                return Notice("ack", time, (entry.alert,), self._count(entry.alert.rule))
        return None

    def silence_of(self, event: Event, now: float) -> Silence | None:
        """Return the silence that covers an alert at a time."""
        return next((one for one in self.silences if one.covers(event, now)), None)

    def standing(self, alert: Transition, now: float) -> dict[str, Any]:
        """Return what people decided about an active alert: `acknowledged` and `silenced`, None where they did not; and `told`."""
        entry, silence = self._entries.get(_key(alert)), self.silence_of(alert.event, now)
        return {
            "told": None if entry is None else entry.told,
            "acknowledged": None if entry is None else entry.acknowledged,
            "silenced": None if silence is None else silence.to_plain(),
        }

    def told(self) -> list[Transition]:
        """Return the active alerts that people have been told of."""
        return [entry.alert for entry in self._entries.values() if entry.told is not None]

    def to_plain(self) -> list[dict[str, Any]]:
        """Return what a server that takes over has to know."""
        kept = list(self._entries.values())[-_KEPT:]
        return [{"told": one.told, "acknowledged": one.acknowledged, **one.alert.to_plain()} for one in kept]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> list[Transition]:
        """Take over what another server left; return the alerts that last. What cannot be read is left out."""
        for row in rows:
            try:
                alert = Transition.from_plain(row)
                told = None if row.get("told") is None else float(row["told"])
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
            known = row.get("acknowledged")
            self._entries[_key(alert)] = _Entry(alert, told, known if isinstance(known, dict) else None)
        return [entry.alert for entry in self._entries.values() if not entry.alert.once]

    def forget(self, alerts: Iterable[Transition]) -> None:
        """Drop alerts that nobody watches any more."""
        for alert in alerts:
            self._entries.pop(_key(alert), None)

    def _follow(self, alerts: Iterable[Transition]) -> None:
        """Keep what people decided about alerts of GPUs whose UUID became known."""
        for alert in alerts:
            if alert.known_as and _key(alert) not in self._entries and (entry := self._by_id(alert)) is not None:
                del self._entries[_key(entry.alert)]
                entry.alert = entry.alert.moved(alert.uuid)
                self._entries[_key(entry.alert)], self.changed = entry, True

    def _by_id(self, alert: Transition) -> _Entry | None:
        return next((entry for entry in self._entries.values() if entry.alert.id == alert.id), None)

    def _turn(self, alert: Transition, now: float) -> None:
        self.changed = True
        if alert.state != "clear":
            self._entries[_key(alert)] = _Entry(alert)
            return
        entry = self._entries.pop(_key(alert), None)
        if entry is not None and (entry.told is not None or entry.grouped):
            self._group("clear", alert, now)  # always told: an incident that somebody opened has to end

    def _consider(self, key: tuple[object, ...], entry: _Entry, alert: Transition, now: float) -> None:
        """Report an alert that nobody knows about, and again one that has lasted for long, unless it is not wanted."""
        event = alert.event
        if entry.grouped:
            return
        again = self.policy.repeat and entry.acknowledged is None and not entry.alert.once
        if entry.told is not None and not (again and now - entry.told >= self.policy.repeat):
            return
        if (silence := self.silence_of(event, now)) is not None or self.policy.mutes(event, now):
            if silence is not None and alert.once:
                del self._entries[key]
            return
        if entry.told is None:
            self._group("fire", entry.alert, now)
        else:
            self._group("repeat", alert, now)
        entry.grouped = True

    def _group(self, kind: str, alert: Transition, now: float) -> None:
        self._groups.setdefault((kind, alert.rule), _Group(now)).alerts.append(alert)

    def _released(self, kind: str, rule: str, now: float) -> Notice:
        group = self._groups.pop((kind, rule))
        for alert in group.alerts:
            entry = self._entries.get(_key(alert)) or self._by_id(alert)
            if entry is not None and kind != "clear":
                entry.told, entry.grouped, self.changed = now, False, True
                if alert.once:
                    del self._entries[_key(alert)]
        return Notice(kind, now, tuple(group.alerts), self._count(rule))

    def _count(self, rule: str) -> int:
        return sum(entry.told is not None and entry.alert.rule == rule for entry in self._entries.values())


def _key(alert: Transition) -> tuple[object, ...]:
    return (*alert.key, alert.time) if alert.once else alert.key
