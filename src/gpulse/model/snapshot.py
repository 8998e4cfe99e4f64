"""Snapshot: everything known about one machine at one point in time; the results of `gpulse doctor`'s checks.

Cadence says what time a sample stands for, and `growth` how far a counter grew: one rule for every mean, sum and share.
"""

from __future__ import annotations

from collections import deque
from types import MappingProxyType

from ..value import Value
from .catalog import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    from .catalog import Gpu, Server

    Level: TypeAlias = Literal["ok", "note", "warn", "fail"]


class Problem(Value, frozen=True):
    """A problem that is not tied to one value: `source` says where, `message` what, `remedy` what to do."""

    source: str
    message: str
    remedy: str = ""

    def __repr__(self) -> str:
        from .codec import printable

        return f"<Problem {printable(self.source)}: {printable(str(self.message), 120)}>"


class Snapshot(Value, frozen=True):
    """One machine at one point in time, immutable. `time` is in seconds since 1970, `driver` has the keys version and cuda.

    `serving` are the model servers on its GPUs and those that the settings name.
    """

    time: float
    gpus: tuple[Gpu, ...] = ()
    host: Host = Host({})
    driver: Mapping[str, str] = MappingProxyType({})
    problems: tuple[Problem, ...] = ()
    serving: tuple[Server, ...] = ()

    def with_gpus(self, gpus: tuple[Gpu, ...]) -> Snapshot:
        """Return a copy with only these GPUs, and the servers on them; a server of which no process is known stays."""
        uuids = {part.uuid for gpu in gpus for part in (gpu, *gpu.instances)}
        serving = tuple(
            one for one in self.serving if not uuids.isdisjoint(one.gpus or ()) or (not one.gpus and one.pid is None)
        )
        return self.replace(gpus=gpus, serving=serving)

    def __hash__(self) -> int:
        return hash((self.time, len(self.gpus)))

    def __repr__(self) -> str:
        from .codec import snapshot_brief

        return snapshot_brief(self)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks; the renderer is in a higher layer, so it is looked up through the package."""
        import gpulse

        return gpulse.snapshot_html(self)


class Check(Value):
    """The result of one check of `gpulse doctor`: `about` is a word or two, `found` a sentence, `remedy` what to do.

    All of it may be published after masking.
    """

    level: Level
    about: str
    found: str
    remedy: str = ""


HOLE = 5.0  # times the usual interval, and at least this many seconds: samples are missing
_UNSEEN = 60.0  # seconds without a sample, at least: what happened meanwhile is unknown


class Cadence:
    """How often samples arrive. A sample stands for the time since the previous one, or for the usual interval after a long hole.

    A hole is told from slow sampling by the recorder's own interval: the usual one, or the one just before. While neither is
    known, more than `first` seconds are a hole: the clock may have been set. `least` seconds or less are never a hole, and after a
    hole of `unseen` seconds or less a sample still represents the whole time.
    """

    __slots__ = ("_before", "_first", "_intervals", "_last", "_least", "_unseen", "usual")

    def __init__(self, first: float = float("inf"), least: float = HOLE, unseen: float = _UNSEEN) -> None:
        self._first, self._least, self._unseen = first, least, unseen
        self._intervals: deque[float] = deque(maxlen=15)
        self._last: float | None = None
        self._before = 0.0
        self.usual = 0.0

    def next(self, time: float) -> tuple[float, bool]:
        """Return the seconds a sample stands for, and whether samples are missing before it."""
        passed = 0.0 if self._last is None else max(0.0, time - self._last)
        self._last = time
        limit = max(HOLE * max(self.usual, self._before) if self.usual else self._first, self._least)
        late = passed > limit
        seconds = self.usual if passed > max(limit, self._unseen) else passed
        self._before = passed
        if passed:
            self._intervals.append(passed)
            self.usual = sorted(self._intervals)[len(self._intervals) // 2]
        return seconds, late


class Growth:
    """A counter that is read every few seconds, so most samples repeat its last value; `at` is the time of its last reading."""

    __slots__ = ("at", "value")

    def __init__(self, value: float = 0.0, at: float | None = None) -> None:
        self.at = at
        self.value = value

    def since(self, value: float | None, at: float) -> tuple[float, float] | None:
        """Return the growth like `grown`, but for a value that has just been read: no growth is 0."""
        if value is not None and self.at is not None and value == self.value and at > self.at:
            since, self.at = self.at, at
            return 0.0, since
        return self.grown(value, at)

    def grown(self, value: float | None, at: float) -> tuple[float, float] | None:
        """Return the growth since the last reading and the time of that one; None if there is no new growth.

        A counter that fell was reset with the driver: counting begins again.
        """
        if value is None or (self.at is not None and value == self.value):
            return None
        before, since = self.value, self.at
        self.value, self.at = value, at
        return None if since is None or value < before or at <= since else (value - before, since)
