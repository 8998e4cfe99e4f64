"""A recording as a sequence of snapshots, read when asked for and never all in memory."""

from __future__ import annotations

import os
from bisect import bisect_left

from ..errors import UsageError
from ..model.brief import moment
from ..model.codec import parse_time
from ..store.frames import Frames
from ..units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import Any, TypeAlias, overload

    import pandas
    import polars
    from typing_extensions import Self

    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from .table import RecordTable

    Moment: TypeAlias = datetime | float | str | None


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Return a recording written by `gpulse record`, `JsonlSink` or `status --json --watch`; plain or .gz, of any size.

    Raises RecordingError when the file cannot be read or does not begin with a snapshot. Close it, or use it in a `with`.
    """
    frames = Frames(os.fspath(path))
    try:
        frames.find_place(0)
    except BaseException:  # whatever it was, the file must not stay open
        frames.close()
        raise
    return Recording(frames)


class Recording:
    """Snapshots in the order they were recorded: iterate, index, slice, or choose by time.

    A slice is a Recording over the same file: closing one closes all. Iterating and slicing from the start read only as far as
    needed; `len`, `duration`, `end` and negative indices look through the whole file once, without parsing it. Where the clock
    of the recorded machine was set back, times count on from there. Used by one thread at a time.
    """

    def __init__(self, frames: Frames, places: range | None = None) -> None:
        self._frames = frames
        self._places = places  # None: all there are, however many
        self._events: tuple[Event, ...] | None = None

    @property
    def path(self) -> str:
        """The file."""
        return self._frames.path

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return next(self._walk(), None) is not None

    def __iter__(self) -> Iterator[Snapshot]:
        return (self._frames[place] for place in self._walk())

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, at: int) -> Snapshot: ...
        @overload
        def __getitem__(self, at: slice) -> Recording: ...

    def __getitem__(self, at: int | slice) -> Snapshot | Recording:
        if isinstance(at, slice):
            forward = at.step is None or at.step > 0
            return Recording(self._frames, self._known(at.start, at.stop if forward else None)[at])
        try:
            return self._frames[self._known(at, None if at < 0 else at + 1)[at]]
        except IndexError:
            raise IndexError(f"{self.path} has no sample {at}") from None

    def between(self, start: Moment = None, end: Moment = None) -> Recording:
        """Return the samples from `start` up to but not including `end`.

        Each is a datetime, a text such as 2026-11-15T06:00:00Z, seconds since 1970, or None for no limit. A datetime without
        a time zone is local time, a text without one is UTC.
        """
        if not self._frames.find_place(0):
            return Recording(self._frames, range(0))
        low = 0 if start is None else self._place_of(_seconds(start))
        high = None if end is None else self._place_of(_seconds(end))
        window = range(low, len(self._whole()) if high is None else high)
        if self._places is None:
            return Recording(self._frames, window)
        return Recording(self._frames, _within(self._places, window))

    @property
    def start(self) -> float:
        """Time of the first sample, in seconds since 1970; raises IndexError when there is none."""
        return self[0].time

    @property
    def end(self) -> float:
        """Time of the last sample, in seconds since 1970; raises IndexError when there is none."""
        return self[-1].time

    @property
    def duration(self) -> float:
        """Seconds from the first sample to the last."""
        places = self._all()
        return abs(self._frames.times[places[-1]] - self._frames.times[places[0]]) if places else 0.0

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened to GPUs and processes between the first sample and the last; found by reading all of them, once."""
        if self._events is None:
            from ..analysis.events import EventDetector

            detector = EventDetector()
            found = {
                event.key: event for snapshot in self for event in detector.observe(snapshot)
            }  # its end replaces it
            found.update({event.key: event for event in detector.finish()})
            self._events = tuple(found.values())
        return self._events

    def to_records(self, metrics: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return one dict per sample and GPU: time (a datetime in UTC), index, uuid, name, state, then metrics by key.

        All dicts have the same keys; a missing value is None. `metrics` chooses, by key or nvidia-smi name. A recording of a
        Monitor also has elapsed, step, phase and run.
        """
        return self._table(metrics).records()

    def to_pandas(self, metrics: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return the rows of `to_records` as a pandas DataFrame: times as datetime64 UTC, integers as Int64.

        Raises GpulseError when pandas is not installed.
        """
        return self._table(metrics).to_pandas()

    def to_polars(self, metrics: Sequence[str] | None = None) -> polars.DataFrame:
        """Return the rows of `to_records` as a polars DataFrame; raises GpulseError when polars is not installed."""
        return self._table(metrics).to_polars()

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._frames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from ..model.brief import printable

        name = printable(os.path.basename(self.path), 60)
        if self._places is None and not self._frames.whole:  # counting could take long
            return f"<Recording {name}>"
        count = len(self)
        if not count:
            return f"<Recording {name}: no samples>"
        try:
            first = self[0]
            what = f"{len(first.gpus)} GPU{'' if len(first.gpus) == 1 else 's'}, from {moment(first.time)}"
        except Exception:  # noqa: BLE001  # closed, or the file is gone: a repr must not raise
            what = "closed"
        return f"<Recording {name}: {count} samples over {duration_text(self.duration)}, {what}>"

    def _table(self, metrics: Sequence[str] | None) -> RecordTable:
        from .table import RecordTable

        return RecordTable((self._frames.line(place) for place in self._walk()), metrics)

    def _walk(self) -> Iterator[int]:
        """Yield the places, finding them as needed."""
        if self._places is not None:
            yield from self._places
            return
        place = 0
        while self._frames.find_place(place):
            yield place
            place += 1

    def _whole(self) -> range:
        self._frames.find(float("inf"))
        return range(len(self._frames))

    def _all(self) -> range:
        return self._whole() if self._places is None else self._places

    def _known(self, start: int | None, stop: int | None) -> range:
        """Return enough places to take a slice of: those up to `stop`, or all where it counts from the end."""
        if self._places is not None:
            return self._places
        if stop is None or stop < 0 or (start or 0) < 0:
            return self._whole()
        self._frames.find_place(stop - 1)
        return range(min(stop, len(self._frames)))

    def _place_of(self, seconds: float) -> int:
        """Return the place of the first sample at or after a time."""
        into = seconds - self._frames[0].time  # exact: such differences of times lose no bits
        self._frames.find(into)
        return bisect_left(self._frames.times, into)


def _seconds(given: datetime | float | str) -> float:
    if isinstance(given, bool) or given is None:
        raise UsageError(f"{given!r} is not a time;", "give a datetime, 2026-11-15T06:00:00Z or seconds since 1970.")
    if isinstance(given, (int, float)):
        return float(given)
    return parse_time(given) if isinstance(given, str) else given.timestamp()


def _within(places: range, window: range) -> range:
    """Return the part of evenly spaced places that lies in a window."""
    kept = [at for at, place in enumerate(places) if place in window]
    return places[kept[0] : kept[-1] + 1] if kept else range(0)
