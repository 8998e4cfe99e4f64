"""Events: what happened to a GPU, a process or the machine, as immutable values; and silences, decisions not to be told of some."""

from __future__ import annotations

import os
import time
from types import MappingProxyType

from ..errors import UsageError
from ..value import Value
from . import condition
from .catalog import PROCESS_METRICS, Process
from .metric import Number
from .select import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from .condition import Condition

_PROCESS_KEYS = ("pid", "name", "user", "memory_used", "running_time", "job", "container")
_OPTIONAL: dict[str, tuple[type, ...]] = {  # the fields that plain data may lack, and their types there
    "until": (int, float),
    "reasons": (list, tuple),
    "value": (int, float),
    "values": (dict,),
    "rule": (str,),
    "alert": (str,),
    "note": (str,),
}


class Event(Value, frozen=True):
    """Something that happened at `time`, in seconds since 1970; a condition that lasts has `until`, None while it is ongoing.

    `gpus` are the numbers people know the GPUs by, `uuids` their UUIDs in the same order; both are empty for the machine.
    `process` is who it is about, `reasons` are throttle reasons, `value` is an XID code, a count, bytes or seconds depending on
    `kind`, `values` holds further numbers and texts by name. An alert is an event whose `rule` is set: `alert` is "fire" or
    "clear", and `kind` says which condition it is about. Texts are as processes and drivers gave them: not safe to print.
    """

    time: float
    kind: str
    gpus: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    process: Process | None = None
    reasons: tuple[str, ...] = ()
    value: float | None = None
    values: Mapping[str, float | str] = MappingProxyType({})
    until: float | None = None
    severity: str = ""
    rule: str = ""
    alert: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.severity:
            usual = "info" if (known := self.condition) is None else known.severity(self.value)
            object.__setattr__(self, "severity", usual)

    @property
    def key(self) -> tuple[object, ...]:
        """What stays the same when an event is told again with its end: two events with one key are one event."""
        pid = None if self.process is None else self.process.pid
        code = self.value if self.kind == "xid" else None  # one sample can bring several
        return self.time, self.kind, self.rule, self.alert, self.uuids or self.gpus, pid, self.note, code

    @property
    def condition(self) -> Condition | None:
        """The condition that it is about; None if the kind is unknown."""
        verdict = self.values.get("verdict") if self.kind == condition.VERDICT else None
        return condition.of_event(self.kind, self.reasons) if verdict is None else condition.of_verdict(str(verdict))

    @property
    def category(self) -> str:
        """What lists and filters group it by: its kind, or alert."""
        return "alert" if self.rule else self.kind

    def is_about(self, uuid: str | None, label: str) -> bool:
        """Return whether it is about a GPU: by its UUID, since another card may have the number now.

        The number counts only for an event without UUIDs, of a GPU that could not tell its own.
        """
        return uuid in self.uuids if self.uuids else label in self.gpus

    def is_named(self, names: Collection[str]) -> bool:
        """Return whether one of these names means it: its category, or the key of its condition."""
        about = self.condition
        if self.category in names or self.rule or about is None or about.kind != self.kind:
            return self.category in names
        return about.key in names

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON takes it; what is empty is left out."""
        plain: dict[str, Any] = {"time": self.time, "kind": self.kind, "severity": self.severity}
        plain |= {"gpus": list(self.gpus), "uuids": list(self.uuids)}
        if self.process is not None:
            plain["process"] = {key: value for key in _PROCESS_KEYS if (value := self.process.get(key)) is not None}
        for name in _OPTIONAL:
            if (value := getattr(self, name)) not in (None, "", (), {}):
                plain[name] = list(value) if isinstance(value, tuple) else value
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Event:
        """Return the event of plain data; what has the wrong type is left out. Raises KeyError without time and kind."""
        given = {name: plain[name] for name, kinds in _OPTIONAL.items() if isinstance(plain.get(name), kinds)}
        given["reasons"] = tuple(given.get("reasons", ()))
        given["uuids"] = tuple(map(str, plain.get("uuids") or ()))
        given["severity"] = str(plain.get("severity") or "")
        if isinstance(process := plain.get("process"), dict):
            given["process"] = Process({key: value for key, value in process.items() if _is_value(key, value)})
        return cls(float(plain["time"]), str(plain["kind"]), tuple(map(str, plain.get("gpus") or ())), **given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        return hash((self.time, self.kind, self.gpus))

    def __repr__(self) -> str:
        rule = f", rule={self.rule!r}, alert={self.alert!r}" if self.rule else ""
        return f"Event({self.time!r}, {self.kind!r}, {self.gpus!r}{rule})"


def _is_value(key: str, value: object) -> bool:
    if key not in _PROCESS_KEYS or isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if isinstance(PROCESS_METRICS[key], Number) else str)


_LONGEST = 200  # characters of a text
_YEAR = 366 * 86_400.0


class Silence(Value):
    """No message about alerts of a rule, on some GPUs, of a user, until a time; what is empty stands for all.

    `gpus` are numbers or beginnings of UUIDs. `by` is who decided it at `since`. `noted` says whether the history has it.
    """

    id: str
    since: float
    until: float
    rule: str = ""
    gpus: Sequence[str] = ()
    user: str = ""
    by: str = ""
    reason: str = ""
    noted: bool = False

    def covers(self, event: Event, now: float) -> bool:
        """Tell whether an alert is not to be told at a time."""
        if not self.since <= now < self.until or (self.rule and event.rule != self.rule):
            return False
        if self.user and self.user != owner_of(event):
            return False
        places = list(zip(event.gpus, event.uuids or event.gpus, strict=False))
        # of an alert about several GPUs, all have to be meant
        return not self.gpus or (bool(places) and all(self._names(*place) for place in places))

    def _names(self, name: str, uuid: str) -> bool:
        return any(word == name or (len(word) >= 4 and uuid.startswith(word)) for word in self.gpus)

    def event(self, kind: str, time: float, by: str = "") -> Event:
        """Return what happened to it: `alert-silenced` or `alert-unsilenced`."""
        values: dict[str, float | str] = {"by": by or self.by, "until": self.until, "id": self.id}
        values |= {key: text for key in ("rule", "user", "reason") if (text := getattr(self, key))}
        return Event(time, kind, tuple(self.gpus), values=values)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Silence:
        """Return a silence of plain data; raises KeyError, TypeError or ValueError for what is none."""
        texts = {name: str(plain.get(name) or "")[:_LONGEST] for name in ("id", "rule", "user", "by", "reason")}
        gpus = [str(word)[:_LONGEST] for word in plain.get("gpus") or ()]
        since, until, noted = float(plain["since"]), float(plain["until"]), bool(plain.get("noted"))
        return cls(since=since, until=until, gpus=gpus, noted=noted, **texts)


def owner_of(event: Event) -> str:
    """Return the user that an event is about; empty if there is none."""
    process = event.process
    return (process.user if process is not None else None) or str(event.values.get("user") or "")


def new_silence(
    by: str,
    seconds: float,
    rules: Iterable[str],
    *,
    rule: str = "",
    gpus: Iterable[str] = (),
    user: str = "",
    reason: str = "",
) -> Silence:
    """Return a silence from now on; raise UsageError for a rule that is none of `rules`, a time that is too long, or a wrong GPU."""
    known = [*rules]
    if rule and rule not in known:
        raise UsageError(f"unknown rule {rule[:60]!r}{did_you_mean(rule, known)}", f"use one of {', '.join(known)}.")
    if not 1 <= seconds <= _YEAR:
        raise UsageError("a silence lasts from a second to a year;", "try 2h, 3d or 1w.")
    words = [word for text in gpus for word in _gpu_words(text)]
    now, cut = time.time(), [text[:_LONGEST] for text in (user, by, reason)]
    return Silence(
        os.urandom(3).hex(), now, now + seconds, rule=rule, gpus=words, user=cut[0], by=cut[1], reason=cut[2]
    )


def _gpu_words(text: str) -> list[str]:
    """Return the GPUs that a word means: 3, 0-3, or the beginning of a UUID."""
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal() and len(text) < 12 and int(first) <= int(last) < 4096:
        return [str(number) for number in range(int(first), int(last) + 1)]
    if not text.isprintable() or not (text.isdecimal() or 4 <= len(text) <= 100):
        raise UsageError(f"{text[:60]!r} is not a GPU;", "write an index, a range (0-3) or the beginning of a UUID.")
    return [text]
