"""Concerns: what is wrong now, each once, with what it costs and what to do next."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .event import Event
    from .verdict import Verdict


class Concern:
    """One thing that is wrong with a GPU, a job or the machine at `time`.

    `key` names the condition, `gpus` are the numbers of the GPUs and `uuids` their UUIDs; both are empty for the machine. `owner` is
    the user it concerns and `pid` the process, where they are known. `since` is when it began, `lost` how many seconds of GPU time it
    has cost since then, `expected` when it will end or hit a limit by itself; None where that is not known. `verdict` and `event` are
    what it was found by, `alerts` the ids of active alerts about it. `title`, `text` and `remedy` are words, empty until
    `present.concerns.worded` adds them.
    """

    __slots__ = (
        "alerts", "confidence", "event", "expected", "gpus", "key", "lost", "owner", "pid", "remedy", "severity", "since", "text", "time",
        "title", "uuids", "verdict",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        severity: str,
        time: float,
        *,
        gpus: Sequence[str] = (),
        uuids: Sequence[str] = (),
        owner: str = "",
        pid: int | None = None,
        since: float | None = None,
        lost: float = 0.0,
        expected: float | None = None,
        confidence: str = "high",
        title: str = "",
        text: str = "",
        remedy: str = "",
        verdict: Verdict | None = None,
        event: Event | None = None,
        alerts: Sequence[str] = (),
    ) -> None:
        self.key = key
        self.severity = severity
        self.time = time
        self.gpus = tuple(gpus)
        self.uuids = tuple(uuids)
        self.owner = owner
        self.pid = pid
        self.since = since
        self.lost = lost
        self.expected = expected
        self.confidence = confidence
        self.title = title
        self.text = text
        self.remedy = remedy
        self.verdict = verdict
        self.event = event
        self.alerts = tuple(alerts)

    def replace(self, **changes: Any) -> Concern:
        """Return a copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        return Concern(fields.pop("key"), fields.pop("severity"), fields.pop("time"), **fields)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data, ready for JSON; times are seconds since 1970."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in ("time", "verdict", "event")}
        plain |= {
            "gpus": list(self.gpus),
            "uuids": list(self.uuids),
            "alerts": list(self.alerts),
            "lost": round(self.lost, 1),
        }
        for name in ("since", "expected"):
            plain[name] = None if plain[name] is None else round(plain[name], 3)
        return plain

    def __repr__(self) -> str:
        return f"Concern({self.key!r}, {self.severity!r}, gpus={self.gpus!r})"
