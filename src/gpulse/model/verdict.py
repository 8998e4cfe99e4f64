"""Verdicts: what limited one GPU over a window of time, with the numbers behind it, and where its time went.

Concerns are what is wrong now, each once: what verdicts and active alerts say together.
"""

from __future__ import annotations

from types import MappingProxyType

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal, TypeAlias

    from .condition import Condition
    from .event import Event

    Confidence: TypeAlias = Literal["high", "medium", "low"]
    Side: TypeAlias = Literal["above", "below", "seen"]
    Plain: TypeAlias = float | int | str | tuple[float, ...] | tuple[str, ...] | None

# The parts of a budget in the order in which bars and lists show them: the GPU at work, what it waited for, and the rest.
PARTS = (
    "tensor", "compute", "memory", "copy", "launch", "throttled",
    "workers", "thread", "storage", "network", "outside", "checkpoint", "unexplained",
    "starting", "idle", "unread",
)  # fmt: skip
WORK = ("tensor", "compute", "memory")  # the SMs are active
WAITS = ("copy", "launch", "workers", "thread", "storage", "network", "outside", "checkpoint", "unexplained")
_LEAST = 5e-5  # of the time; less is 0 when it is written


class Budget(Value, frozen=True):
    """Where `seconds` of a GPU went: `shares` (0–1) by part, in the order of PARTS, without parts that are 0; they sum to 1.

    `estimated` names the parts that were inferred rather than counted by the hardware. Immutable.
    """

    seconds: float
    shares: Mapping[str, float]
    estimated: Collection[str] = ()

    def __post_init__(self) -> None:
        present = {part: self.shares[part] for part in PARTS if self.shares.get(part, 0.0) >= _LEAST}
        object.__setattr__(self, "shares", MappingProxyType(present))
        object.__setattr__(self, "estimated", frozenset(self.estimated) & present.keys())

    @property
    def work(self) -> float:
        """The share of the time (0–1) in which the chip worked."""
        return sum(self.shares.get(part, 0.0) for part in WORK)

    def to_plain(self) -> dict[str, Any]:
        """Return the budget as plain data, ready for JSON."""
        return {
            "seconds": round(self.seconds, 3),
            "shares": {part: round(share, 4) for part, share in self.shares.items()},
            "estimated": [part for part in self.shares if part in self.estimated],
        }

    @classmethod
    def from_plain(cls, plain: object) -> Budget | None:
        """Build a budget from plain data; None if there is none. Parts it does not know are left out."""
        if not isinstance(plain, dict) or not isinstance(shares := plain.get("shares"), dict):
            return None
        known = {part: float(share) for part, share in shares.items() if isinstance(share, (int, float))}
        seconds, guessed = plain.get("seconds"), plain.get("estimated")
        estimated = [part for part in guessed if isinstance(part, str)] if isinstance(guessed, (list, tuple)) else []
        return cls(float(seconds) if isinstance(seconds, (int, float)) else 0.0, known, estimated)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        return hash((self.seconds, tuple(self.shares.items())))

    def __repr__(self) -> str:
        parts = ", ".join(f"{part} {100 * share:.0f} %" for part, share in self.shares.items())
        return f"Budget({self.seconds:.0f} s: {parts})"


def total_budget(budgets: Iterable[Budget]) -> Budget | None:
    """Return one budget of several, each counting by its seconds; None if there is none."""
    known = [one for one in budgets if one.seconds > 0]
    seconds = sum(one.seconds for one in known)
    if not known:
        return None
    shares = {part: sum(one.shares.get(part, 0.0) * one.seconds for one in known) / seconds for part in PARTS}
    return Budget(seconds, shares, frozenset().union(*(one.estimated for one in known)))


class Evidence(Value, frozen=True):
    """One number of a verdict.

    `metric` is a catalog key or one of the figures that the diagnosis derives (see docs/diagnosis.md). `threshold` is the limit
    that decided, None if there is none; `side` says on which side of it the value lies, `seen` for a plain fact. `text` is the
    number as text, empty until `present.verdicts.worded` adds it.
    """

    metric: str
    value: Plain
    threshold: float | None = None
    side: Side = "seen"
    text: str = ""


class Holder(Value, frozen=True):
    """A process that a verdict is about. Texts are as the process gave them."""

    pid: int | None
    name: str = ""
    user: str = ""
    command: str = ""
    job: str = ""
    memory: float | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the process as plain data."""
        plain = super().to_plain()
        return plain | {"memory_used": plain.pop("memory")}


class Verdict(Value, frozen=True):
    """What limited one GPU from `start` to `end` (seconds since 1970).

    `key` names the cause, `share` is the part of the judged time (0–1) in which it applied, `values` holds further numbers such as
    a period or an estimated time until memory is full. `also` lists what else was seen, the most important first. `advice` holds
    keys. `title` and `remedies` are verdict and advice as text, empty until `present.verdicts.worded` adds them. `since` is when
    it began to hold, None where only the window is known. `budget` says where the time of the GPU went. `instance` names a MIG
    instance of the GPU ("1", or "1/0" with its compute instance), empty for a whole GPU.
    """

    key: str
    confidence: Confidence = "medium"
    evidence: Sequence[Evidence] = ()
    advice: Sequence[str] = ()
    also: Sequence[Verdict] = ()
    index: int | None = None
    uuid: str | None = None
    processes: Sequence[Holder] = ()
    start: float = 0.0
    end: float = 0.0
    share: float = 1.0
    values: Mapping[str, Plain] = MappingProxyType({})
    title: str = ""
    remedies: Sequence[str] = ()
    since: float | None = None
    budget: Budget | None = None
    instance: str = ""

    def _repr_html_(self) -> str:
        """Return HTML for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.diagnosis_html([self])

    @property
    def condition(self) -> Condition | None:
        """The condition that it is about; None if the key is unknown."""
        from .condition import CONDITIONS  # with the catalog, which a program that only collects does not load

        return CONDITIONS.get(self.key)

    @property
    def severity(self) -> str:
        """How bad it is: critical, warn, info or good."""
        code, condition = self.values.get("xid"), self.condition
        return "info" if condition is None else condition.severity(code if isinstance(code, (int, float)) else None)

    @property
    def label(self) -> str:
        """The index of the GPU, with that of the MIG instance after a colon: 0, 0:1; "?" where it has none."""
        name = "?" if self.index is None else f"{self.index}"
        return f"{name}:{self.instance}" if self.instance else name

    def __hash__(self) -> int:
        return hash((self.key, self.index, self.uuid, self.start, self.end))

    def to_plain(self) -> dict[str, Any]:
        """Return the verdict as plain data, ready for JSON."""
        from .codec import time_text

        plain = super().to_plain()
        place = {"instance": self.instance} if self.instance else {}
        budget = {} if self.budget is None else {"budget": plain["budget"]}
        return {
            "index": self.index,
            **place,
            "uuid": self.uuid,
            "verdict": self.key,
            "title": self.title,
            "confidence": self.confidence,
            "share": round(self.share, 4),
            "evidence": plain["evidence"],
            "advice": plain["remedies"],
            "advice_keys": plain["advice"],
            "processes": plain["processes"],
            "values": plain["values"],
            "window": {"from": time_text(self.start), "to": time_text(self.end)},
            "since": None if self.since is None else time_text(self.since),
            **budget,
            "also": plain["also"],
        }


class Diagnosis(Value, frozen=True):
    """The verdict of every GPU over one window of time, in the order of the GPUs."""

    verdicts: Sequence[Verdict] = ()
    start: float = 0.0
    end: float = 0.0
    samples: int = 0

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

        window = {"from": time_text(self.start), "to": time_text(self.end), "samples": self.samples}
        return {"window": window, "gpus": [verdict.to_plain() for verdict in self.verdicts]}


class Concern(Value):
    """One thing that is wrong with a GPU, a job or the machine at `time`.

    `key` names the condition, `gpus` are the numbers of the GPUs and `uuids` their UUIDs; both are empty for the machine. `owner` is
    the user it concerns and `pid` the process, where they are known. `since` is when it began, `lost` how many seconds of GPU time it
    has cost since then, `expected` when it will end or hit a limit by itself; None where that is not known. `verdict` and `event` are
    what it was found by, `alerts` the ids of active alerts about it. `title`, `text` and `remedy` are words, empty until
    `present.concerns.worded` adds them.
    """

    key: str
    severity: str
    time: float
    gpus: Sequence[str] = ()
    uuids: Sequence[str] = ()
    owner: str = ""
    pid: int | None = None
    since: float | None = None
    lost: float = 0.0
    expected: float | None = None
    confidence: str = "high"
    title: str = ""
    text: str = ""
    remedy: str = ""
    verdict: Verdict | None = None
    event: Event | None = None
    alerts: Sequence[str] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data, ready for JSON; times are seconds since 1970."""
        plain = super().to_plain() | {"lost": round(self.lost, 1)}
        for name in ("since", "expected"):
            plain[name] = None if plain[name] is None else round(plain[name], 3)
        return {name: plain[name] for name in sorted(plain) if name not in ("time", "verdict", "event")}
