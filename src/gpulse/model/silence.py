"""Silences: decisions of people not to be told of some alerts for a while."""

from __future__ import annotations

import secrets
import time

from ..errors import UsageError
from .event import Event
from .select import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_TEXTS = ("id", "rule", "user", "by", "reason")
_LONGEST = 200  # characters of a text
_YEAR = 366 * 86_400.0


class Silence:
    """No message about alerts of a rule, on some GPUs, of a user, until a time; what is empty stands for all.

    `gpus` are numbers or beginnings of UUIDs. `by` is who decided it at `since`. `noted` says whether the history has it.
    """

    __slots__ = ("by", "gpus", "id", "noted", "reason", "rule", "since", "until", "user")

    def __init__(
        self,
        id: str,
        since: float,
        until: float,
        *,
        rule: str = "",
        gpus: Iterable[str] = (),
        user: str = "",
        by: str = "",
        reason: str = "",
        noted: bool = False,
    ) -> None:
        self.id = id
        self.since = since
        self.until = until
        self.rule = rule
        self.gpus = tuple(gpus)
        self.user = user
        self.by = by
        self.reason = reason
        self.noted = noted

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
        return Event(time, kind, self.gpus, values=values)

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {name: list(self.gpus) if name == "gpus" else getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Silence:
        """Return a silence of plain data; raises KeyError, TypeError or ValueError for what is none."""
        id, rule, user, by, reason = (str(plain.get(name) or "")[:_LONGEST] for name in _TEXTS)
        gpus = [str(word)[:_LONGEST] for word in plain.get("gpus") or ()]
        since, until, noted = float(plain["since"]), float(plain["until"]), bool(plain.get("noted"))
        return cls(id, since, until, rule=rule, gpus=gpus, user=user, by=by, reason=reason, noted=noted)


def owner_of(event: Event) -> str:
    """Return the user that an event is about; empty where there is none."""
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
        secrets.token_hex(3), now, now + seconds, rule=rule, gpus=words, user=cut[0], by=cut[1], reason=cut[2]
    )


def _gpu_words(text: str) -> list[str]:
    """Return the GPUs that a word means: 3, 0-3, or the beginning of a UUID."""
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal() and len(text) < 12 and int(first) <= int(last) < 4096:
        return [str(number) for number in range(int(first), int(last) + 1)]
    if not text.isprintable() or not (text.isdecimal() or 4 <= len(text) <= 100):
        raise UsageError(f"{text[:60]!r} is not a GPU;", "write an index, a range (0-3) or the beginning of a UUID.")
    return [text]
