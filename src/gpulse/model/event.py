"""Event: something that happened to a GPU, a process or the machine, as an immutable, serializable value."""

from __future__ import annotations

from . import condition
from .catalog import PROCESS_METRICS, Process
from .metric import Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from .condition import Condition

_PROCESS_KEYS = ("pid", "name", "user", "memory_used", "running_time", "job", "container")
_OPTIONAL = ("until", "reasons", "value", "values", "rule", "alert", "note")


class Event:
    """Something that happened at `time`, in seconds since 1970; a condition that lasts has `until`, None while it is ongoing.

    `gpus` are the numbers people know the GPUs by, `uuids` their UUIDs in the same order; both are empty for the machine.
    `process` is who it is about, `reasons` are throttle reasons, `value` is an XID code, a count, bytes or seconds depending on
    `kind`, `values` holds further numbers and texts by name. An alert is an event whose `rule` is set: `alert` is "fire" or
    "clear", and `kind` says which condition it is about. Texts are as processes and drivers gave them: not safe to print.
    """

    __slots__ = (
        "alert", "gpus", "kind", "note", "process", "reasons", "rule", "severity", "time", "until", "uuids", "value", "values",
    )  # fmt: skip
    time: float
    kind: str
    gpus: tuple[str, ...]
    uuids: tuple[str, ...]
    process: Process | None
    reasons: tuple[str, ...]
    value: float | None
    values: Mapping[str, float | str]
    until: float | None
    severity: str
    rule: str
    alert: str
    note: str

    def __init__(
        self,
        time: float,
        kind: str,
        gpus: Iterable[str] = (),
        *,
        uuids: Iterable[str] = (),
        process: Process | None = None,
        reasons: Iterable[str] = (),
        value: float | None = None,
        values: Mapping[str, float | str] | None = None,
        until: float | None = None,
        severity: str = "",
        rule: str = "",
        alert: str = "",
        note: str = "",
    ) -> None:
        reasons = tuple(reasons)
        fields = (
            ("time", time), ("kind", kind), ("gpus", tuple(gpus)), ("uuids", tuple(uuids)), ("process", process),
            ("reasons", reasons), ("value", value), ("values", values or {}), ("until", until),
            ("rule", rule), ("alert", alert), ("note", note),
        )  # fmt: skip
        for name, given in fields:
            object.__setattr__(self, name, given)
        object.__setattr__(self, "severity", severity or self._usual_severity())

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

    def _usual_severity(self) -> str:
        return "info" if (known := self.condition) is None else known.severity(self.value)

    @property
    def category(self) -> str:
        """What lists and filters group it by: its kind, or alert."""
        return "alert" if self.rule else self.kind

    def is_named(self, names: Collection[str]) -> bool:
        """Return whether one of these names means it: its category, or the key or an alias of its condition."""
        about = self.condition
        if self.category in names or self.rule or about is None or about.kind != self.kind:
            return self.category in names
        return about.key in names or any(alias in names for alias in about.aliases)

    def replace(self, **changes: Any) -> Event:
        """Return a copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return Event(**{**fields, **changes})

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
        given = {name: plain[name] for name in _OPTIONAL if isinstance(plain.get(name), _TYPES[name])}
        given["uuids"] = map(str, plain.get("uuids") or ())
        given["severity"] = str(plain.get("severity") or "")
        if isinstance(process := plain.get("process"), dict):
            given["process"] = Process({key: value for key, value in process.items() if _is_value(key, value)})
        return cls(float(plain["time"]), str(plain["kind"]), map(str, plain.get("gpus") or ()), **given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Event is a value and cannot be changed; use replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an Event is a value and cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        return hash((self.time, self.kind, self.gpus))

    def __repr__(self) -> str:
        rule = f", rule={self.rule!r}, alert={self.alert!r}" if self.rule else ""
        return f"Event({self.time!r}, {self.kind!r}, {self.gpus!r}{rule})"


_TYPES: dict[str, tuple[type, ...]] = {
    "until": (int, float),
    "reasons": (list, tuple),
    "value": (int, float),
    "values": (dict,),
    "rule": (str,),
    "alert": (str,),
    "note": (str,),
}


def _is_value(key: str, value: object) -> bool:
    if key not in _PROCESS_KEYS or isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if isinstance(PROCESS_METRICS[key], Number) else str)
