"""What is asked of the history: a stretch of time, some GPUs, some metrics; and the answer, fetched once."""

from __future__ import annotations

import time

from ...errors import RecordingError, UnknownGpu, UsageError
from ...model.catalog import GPU_METRICS
from ...model.codec import parse_time
from ...model.select import metric_named
from ...units import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.event import Event
    from ...store.history import GpuIdentity, HistoryReader, HistorySeries, Usage

METRICS = ("utilization", "sm_active", "memory_used", "power_draw", "temperature")
_SINCE = 2 * 3600.0


class HistoryRequest:
    """A question: from `start` to `end` in seconds since 1970, these metrics, these GPUs (None: all), at most `points` points, by owner."""

    def __init__(
        self, start: float, end: float, metrics: Sequence[str], gpus: Sequence[str] | None, points: int, by: str
    ) -> None:
        self.start = start
        self.end = end
        self.metrics = tuple(metrics)
        self.gpus = gpus
        self.points = points
        self.by = by


class HistoryAnswer:
    """What the history says: GPUs with their series by metric, the machine's CPU, who used what, and events."""

    def __init__(self, reader: HistoryReader, asked: HistoryRequest) -> None:
        self.asked = asked
        self.gpus = chosen(reader.gpus(asked.start, asked.end), asked.gpus)
        uuids = [gpu.uuid for gpu in self.gpus]
        found = reader.series(asked.metrics, uuids, asked.start, asked.end, asked.points)
        self._series = {(series.uuid, series.key): series for series in found}
        self.usage: list[Usage] = reader.usage(asked.start, asked.end, asked.by, uuids)
        self.events: list[Event] = [
            event
            for event in reader.events(asked.start, asked.end)
            if not event.uuids or asked.gpus is None or not set(uuids).isdisjoint(event.uuids)
        ]

    def series(self, gpu: GpuIdentity, key: str) -> HistorySeries | None:
        """Return one metric of one GPU; None when it was never recorded."""
        return self._series.get((gpu.uuid, key))

    @property
    def times(self) -> list[float]:
        """The moments that all series share."""
        return next((series.times for series in self._series.values()), [])


def stretch(since: str | None, start: str | None, end: str | None, now: float | None = None) -> tuple[float, float]:
    """Return the stretch of time that options name, two hours unless they do; raise UsageError when it is none."""
    now = time.time() if now is None else now
    if since is not None and start is not None:
        raise UsageError("--since and --from say the same thing;", "give one of them.")
    last = now if end is None else moment(end, now, latest=True)
    first = moment(start, now) if start is not None else last - (_SINCE if since is None else parse_duration(since))
    if first >= last:
        raise UsageError("this stretch of time ends before it begins;", "look at --from and --to.")
    return first, last


def moment(text: str, now: float, latest: bool = False) -> float:
    """Read a time: RFC 3339, 2026-11-15 03:00 or 03:00 of this machine's clock, or a duration ago: 2h.

    A time of the hour that the end of summer time repeats is the first of the two, or the `latest`.
    """
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return _by_the_clock(time.strptime(text, form)[:6], latest)
        except (ValueError, OverflowError):
            continue
    for form in ("%H:%M:%S", "%H:%M"):
        try:
            clock = time.strptime(text, form)
        except ValueError:
            continue
        today = time.localtime(now)
        found = _by_the_clock((*today[:3], clock.tm_hour, clock.tm_min, clock.tm_sec), latest)
        return found if found <= now else found - 86400.0  # 23:00 asked in the morning is yesterday's
    if text[:1].isdecimal() and text[-1:].isalpha() and text[-1] not in "Zz":
        return now - parse_duration(text)
    try:
        return parse_time(text)
    except RecordingError:
        raise UsageError(f"{text!r} is not a time;", "write it as 03:00, '2026-11-15 03:00' or 2h (ago).") from None


def _by_the_clock(fields: Sequence[int], latest: bool) -> float:
    """Return when this machine's clock shows a date and time, the first or the latest of two times."""
    shown = [
        found
        for summer in (0, 1)
        if time.localtime(found := time.mktime((*fields, 0, 0, summer)))[:6] == tuple(fields)  # type: ignore[arg-type]
    ]
    guess = time.mktime((*fields, 0, 0, -1))  # type: ignore[arg-type]  # one that the clock leaps over
    return (max(shown) if latest else min(shown)) if shown else guess


def metrics_named(names: Sequence[str] | None) -> list[str]:
    """Return the keys of metrics by name; raise UnknownMetric for one that is none."""
    return list(METRICS) if names is None else [metric_named(name, GPU_METRICS).key for name in names]


def chosen(gpus: Sequence[GpuIdentity], words: Sequence[str] | None) -> list[GpuIdentity]:
    """Return the GPUs that words name by index or UUID; raise UnknownGpu when one fits none that was recorded."""
    if words is None:
        return [*gpus]
    found = []
    for word in words:
        fits = [gpu for gpu in gpus if word == str(gpu.index) or gpu.uuid.lower().startswith(word.lower())]
        if not fits:
            have = ", ".join(str(gpu.index) for gpu in gpus if gpu.index is not None)
            raise UnknownGpu(f"there was no GPU {word!r} in this time;", f"there were {have or 'none'}.")
        found += [gpu for gpu in fits if gpu not in found]
    return found
