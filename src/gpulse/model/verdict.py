"""Verdicts: what limited one GPU over a window of time, with the numbers that say so."""

from __future__ import annotations

from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Literal, TypeAlias

    from .budget import Budget

    Confidence: TypeAlias = Literal["high", "medium", "low"]
    Side: TypeAlias = Literal["above", "below", "seen"]
    Plain: TypeAlias = float | int | str | tuple[float, ...] | tuple[str, ...] | None

CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
SIDES: tuple[Side, ...] = ("above", "below", "seen")


class _Value:
    """Base of the immutable values of this module: equal when all fields are equal."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is a value and cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is a value and cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Evidence(_Value):
    """One number of a verdict.

    `metric` is a catalog key or one of the figures that the diagnosis derives (see docs/diagnosis.md). `threshold` is the limit
    that decided, None where there is none; `side` says on which side of it the value lies, `seen` for a plain fact. `text` is the
    number in words, empty until `present.verdicts.worded` adds it.
    """

    __slots__ = ("metric", "side", "text", "threshold", "value")
    metric: str
    value: Plain
    threshold: float | None
    side: Side
    text: str

    def __init__(
        self, metric: str, value: Plain, threshold: float | None = None, side: Side = "seen", text: str = ""
    ) -> None:
        assign = object.__setattr__
        assign(self, "metric", metric)
        assign(self, "value", value)
        assign(self, "threshold", threshold)
        assign(self, "side", side)
        assign(self, "text", text)

    def to_plain(self) -> dict[str, Any]:
        """Return the number as plain data."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {
            "metric": self.metric,
            "value": value,
            "threshold": self.threshold,
            "side": self.side,
            "text": self.text,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Evidence:
        """Build it from plain data; what has the wrong type is left out."""
        side = plain.get("side")
        threshold = plain.get("threshold")
        return cls(
            str(plain.get("metric", "")),
            _frozen(plain.get("value")),
            threshold if isinstance(threshold, (int, float)) else None,
            side if side in SIDES else "seen",
            str(plain.get("text") or ""),
        )


class Holder(_Value):
    """A process that a verdict is about. Texts are as the process gave them."""

    __slots__ = ("command", "job", "memory", "name", "pid", "user")
    pid: int | None
    name: str
    user: str
    command: str
    job: str
    memory: float | None

    def __init__(
        self,
        pid: int | None,
        name: str = "",
        user: str = "",
        command: str = "",
        job: str = "",
        memory: float | None = None,
    ) -> None:
        assign = object.__setattr__
        assign(self, "pid", pid)
        assign(self, "name", name)
        assign(self, "user", user)
        assign(self, "command", command)
        assign(self, "job", job)
        assign(self, "memory", memory)

    def to_plain(self) -> dict[str, Any]:
        """Return the process as plain data."""
        return {
            "pid": self.pid,
            "name": self.name,
            "user": self.user,
            "command": self.command,
            "job": self.job,
            "memory_used": self.memory,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Holder:
        """Build it from plain data."""
        pid, memory = plain.get("pid"), plain.get("memory_used")
        name, user, command, job = (str(plain.get(key) or "") for key in ("name", "user", "command", "job"))
        held = memory if isinstance(memory, (int, float)) else None
        return cls(int(pid) if isinstance(pid, (int, float)) else None, name, user, command, job, held)


class Verdict(_Value):
    """What limited one GPU from `start` to `end` (seconds since 1970).

    `key` names the cause, `share` is the part of the judged time (0–1) in which it applied, `values` holds further numbers such as
    a period or an estimated time until memory is full. `also` lists what else was seen, the most important first. `advice` holds
    keys. `title` and `remedies` are verdict and advice in words, empty until `present.verdicts.worded` adds them. `since` is when
    it began to hold, None where only the window is known. `budget` says where the time of the GPU went. `instance` names a MIG
    instance of the GPU ("1", or "1/0" with its compute instance), empty for a whole GPU.
    """

    __slots__ = (
        "advice", "also", "budget", "confidence", "end", "evidence", "index", "instance", "key", "processes", "remedies", "share",
        "since", "start", "title", "uuid", "values",
    )  # fmt: skip
    title: str
    remedies: tuple[str, ...]
    key: str
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]
    also: tuple[Verdict, ...]
    index: int | None
    uuid: str | None
    processes: tuple[Holder, ...]
    start: float
    end: float
    share: float
    values: Mapping[str, Plain]
    since: float | None
    budget: Budget | None
    instance: str

    def __init__(
        self,
        key: str,
        confidence: Confidence = "medium",
        evidence: Sequence[Evidence] = (),
        *,
        advice: Sequence[str] = (),
        also: Sequence[Verdict] = (),
        index: int | None = None,
        uuid: str | None = None,
        processes: Sequence[Holder] = (),
        start: float = 0.0,
        end: float = 0.0,
        share: float = 1.0,
        values: Mapping[str, Plain] = MappingProxyType({}),
        title: str = "",
        remedies: Sequence[str] = (),
        since: float | None = None,
        budget: Budget | None = None,
        instance: str = "",
    ) -> None:
        assign = object.__setattr__
        assign(self, "title", title)
        assign(self, "remedies", tuple(remedies))
        assign(self, "key", key)
        assign(self, "confidence", confidence)
        assign(self, "evidence", tuple(evidence))
        assign(self, "advice", tuple(advice))
        assign(self, "also", tuple(also))
        assign(self, "index", index)
        assign(self, "uuid", uuid)
        assign(self, "processes", tuple(processes))
        assign(self, "start", start)
        assign(self, "end", end)
        assign(self, "share", share)
        assign(self, "values", MappingProxyType(dict(values)))
        assign(self, "since", since)
        assign(self, "budget", budget)
        assign(self, "instance", instance)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.diagnosis_html([self])

    @property
    def label(self) -> str:
        """The index of the GPU, with that of the MIG instance after a colon: 0, 0:1; "?" where it has none."""
        name = "?" if self.index is None else f"{self.index}"
        return f"{name}:{self.instance}" if self.instance else name

    def replace(self, **changes: Any) -> Verdict:
        """Return a copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        return Verdict(fields.pop("key"), fields.pop("confidence"), fields.pop("evidence"), **fields)

    def to_plain(self) -> dict[str, Any]:
        """Return the verdict as plain data, ready for JSON."""
        from .codec import time_text

        place = {"instance": self.instance} if self.instance else {}
        budget = {} if self.budget is None else {"budget": self.budget.to_plain()}
        return {
            "index": self.index,
            **place,
            "uuid": self.uuid,
            "verdict": self.key,
            "title": self.title,
            "confidence": self.confidence,
            "share": round(self.share, 4),
            "evidence": [one.to_plain() for one in self.evidence],
            "advice": list(self.remedies),
            "advice_keys": list(self.advice),
            "processes": [one.to_plain() for one in self.processes],
            "values": {key: list(value) if isinstance(value, tuple) else value for key, value in self.values.items()},
            "window": {"from": time_text(self.start), "to": time_text(self.end)},
            "since": None if self.since is None else time_text(self.since),
            **budget,
            "also": [one.to_plain() for one in self.also],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Verdict:
        """Build a verdict from plain data; keys it does not know are ignored."""
        from .budget import Budget

        window = plain.get("window") or {}
        confidence, index, share = (plain.get(key) for key in ("confidence", "index", "share"))
        return cls(
            str(plain.get("verdict", "unknown")),
            confidence if confidence in CONFIDENCES else "low",
            [Evidence.from_plain(one) for one in _objects(plain.get("evidence"))],
            advice=_texts(plain.get("advice_keys")),
            title=str(plain.get("title") or ""),
            remedies=_texts(plain.get("advice")),
            also=[cls.from_plain(one) for one in _objects(plain.get("also"))],
            index=int(index) if isinstance(index, (int, float)) else None,
            uuid=plain["uuid"] if isinstance(plain.get("uuid"), str) else None,
            processes=[Holder.from_plain(one) for one in _objects(plain.get("processes"))],
            start=_moment(window.get("from")),
            end=_moment(window.get("to")),
            share=share if isinstance(share, (int, float)) else 1.0,
            values={str(key): _frozen(value) for key, value in (plain.get("values") or {}).items()},
            since=_moment(plain.get("since")) or None,
            budget=Budget.from_plain(plain.get("budget")),
            instance=str(plain.get("instance") or ""),
        )


class Diagnosis(_Value):
    """The verdict of every GPU over one window of time, in the order of the GPUs."""

    __slots__ = ("end", "samples", "start", "verdicts")
    verdicts: tuple[Verdict, ...]
    start: float
    end: float
    samples: int

    def __init__(
        self, verdicts: Sequence[Verdict] = (), start: float = 0.0, end: float = 0.0, samples: int = 0
    ) -> None:
        assign = object.__setattr__
        assign(self, "verdicts", tuple(verdicts))
        assign(self, "start", start)
        assign(self, "end", end)
        assign(self, "samples", samples)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.diagnosis_html(self)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __getitem__(self, at: int) -> Verdict:
        return self.verdicts[at]

    def of(self, index: int) -> Verdict | None:
        """Return the verdict of the GPU with this index, None when there is none."""
        return next((verdict for verdict in self.verdicts if verdict.index == index), None)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        from .codec import time_text

        return {
            "window": {"from": time_text(self.start), "to": time_text(self.end), "samples": self.samples},
            "gpus": [verdict.to_plain() for verdict in self.verdicts],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Diagnosis:
        """Build a diagnosis from plain data."""
        window = plain.get("window") or {}
        samples = window.get("samples")
        return cls(
            [Verdict.from_plain(one) for one in _objects(plain.get("gpus"))],
            _moment(window.get("from")),
            _moment(window.get("to")),
            int(samples) if isinstance(samples, (int, float)) else 0,
        )


def _objects(plain: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in plain if isinstance(entry, dict)] if isinstance(plain, (list, tuple)) else []


def _texts(plain: Any) -> list[str]:
    return [text for text in plain if isinstance(text, str)] if isinstance(plain, (list, tuple)) else []


def _frozen(value: Any) -> Plain:
    if isinstance(value, list):
        return tuple(value)
    return value if isinstance(value, (int, float, str)) else None


def _moment(text: Any) -> float:
    from ..errors import RecordingError
    from .codec import parse_time

    try:
        return parse_time(text)
    except RecordingError:
        return 0.0
