"""A recording as a sequence of snapshots, read when asked for and never all in memory, and as a table for data frames."""

from __future__ import annotations

import json
import os
from bisect import bisect_left

from ..errors import RecordingError, UsageError
from ..model.catalog import GPU_METRICS
from ..model.codec import from_plain, parse_time, utc_text
from ..model.metric import Flag, Number, Numbers, Text
from ..model.select import metric_named
from ..store.recording import Frames
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

    Moment: TypeAlias = datetime | float | str | None
    from collections.abc import Iterable
    from typing import Literal

    Kind: TypeAlias = Literal["time", "integer", "number", "text", "flag", "words", "numbers"]


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
            seen = [event for snapshot in self for event in detector.observe(snapshot)]
            found = {event.key: event for event in (*seen, *detector.finish())}  # its end replaces it
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
        from ..model.codec import printable

        name = printable(os.path.basename(self.path), 60)
        if self._places is None and not self._frames.whole:  # counting could take long
            return f"<Recording {name}>"
        count = len(self)
        if not count:
            return f"<Recording {name}: no samples>"
        try:
            first = self[0]
            what = f"{len(first.gpus)} GPU{'' if len(first.gpus) == 1 else 's'}, from {utc_text(first.time)}"
        except Exception:  # noqa: BLE001  # closed, or the file is gone: a repr must not raise
            what = "closed"
        return f"<Recording {name}: {count} samples over {duration_text(self.duration)}, {what}>"

    def _table(self, metrics: Sequence[str] | None) -> RecordTable:

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


_FIRST = ("index", "uuid", "name", "state")  # after the time, in every table
# what a Monitor adds to its samples
_PROGRAM: dict[str, Kind] = {"elapsed": "number", "step": "integer", "phase": "text", "run": "text"}


class RecordTable:
    """Columns by key, all of one length; times are whole microseconds since 1970."""

    def __init__(self, lines: Iterable[bytes], metrics: Sequence[str] | None = None) -> None:
        self._chosen = None if metrics is None else [metric_named(name).key for name in metrics]
        self._columns: dict[str, list[Any]] = {}
        self._count = 0
        for line in lines:
            self._add(line)
        order = ["time", *_PROGRAM, *_FIRST, *(self._chosen or GPU_METRICS)]
        self._columns = {key: self._filled(key) for key in dict.fromkeys(order) if key in self._columns}
        self._kinds = {key: _kind(key, values) for key, values in self._columns.items()}

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts, with times as datetimes in UTC."""
        from datetime import datetime, timedelta, timezone

        start = datetime(1970, 1, 1, tzinfo=timezone.utc)
        columns = dict(self._columns)
        if "time" in columns:
            columns["time"] = [start + timedelta(microseconds=micros) for micros in columns["time"]]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the columns as a pandas DataFrame."""
        from ..sinks.base import load

        pd = load("pandas", "pandas")
        types = {"integer": "Int64", "number": "float64", "text": "string", "flag": "boolean"}
        series = {}
        for key, values in self._columns.items():
            if key == "time":
                series[key] = pd.to_datetime(pd.Series(values, dtype="int64"), unit="us", utc=True)
            else:
                series[key] = pd.Series(values, dtype=types.get(self._kinds[key], "object"))
        frame: pandas.DataFrame = pd.DataFrame(series)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the columns as a polars DataFrame."""
        from ..sinks.base import load

        pl = load("polars", "polars")
        types = {
            "time": pl.Int64,
            "integer": pl.Int64,
            "number": pl.Float64,
            "text": pl.String,
            "flag": pl.Boolean,
            "words": pl.List(pl.String),
            "numbers": pl.List(pl.Float64),
        }
        series = [
            pl.Series(key, values, dtype=types[self._kinds[key]], strict=False) for key, values in self._columns.items()
        ]
        frame: polars.DataFrame = pl.DataFrame(series)
        if "time" in self._columns:
            frame = frame.with_columns(pl.col("time").cast(pl.Datetime("us", "UTC")))
        return frame

    def _add(self, line: bytes) -> None:
        try:
            plain = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordingError(f"a line is not JSON ({error}).") from None
        snapshot = from_plain(plain)
        program = {key: plain[key] for key in _PROGRAM if key in plain}
        for row in self._rows(snapshot):
            self._put("time", round(snapshot.time * 1_000_000))
            for key, value in {**program, **row}.items():
                self._put(key, value)
            self._count += 1

    def _rows(self, snapshot: Snapshot) -> Iterable[dict[str, Any]]:
        for gpu in snapshot.gpus:
            row: dict[str, Any] = {key: gpu.get(key) for key in _FIRST if key != "state"}
            row["state"] = gpu.state
            if self._chosen is not None:
                row.update({key: gpu.get(key) for key in self._chosen})
            else:
                row.update({key: None for key in gpu.gaps if key in GPU_METRICS})
                row.update(gpu.items())
            yield {key: list(value) if isinstance(value, tuple) else value for key, value in row.items()}

    def _put(self, key: str, value: Any) -> None:
        column = self._columns.setdefault(key, [])
        column.extend([None] * (self._count - len(column)))  # rows before this key was first seen
        column.append(value)

    def _filled(self, key: str) -> list[Any]:
        column = self._columns[key]
        column.extend([None] * (self._count - len(column)))
        return column


def _kind(key: str, values: list[Any]) -> Kind:
    """Return the type of a column: a number is an integer where all of its values are."""
    metric = GPU_METRICS.get(key)
    if key == "time":
        return "time"
    if isinstance(metric, Number) or _PROGRAM.get(key) in ("number", "integer"):
        known = [value for value in values if value is not None]
        whole = bool(known) and all(type(value) is int for value in known)
        return "integer" if whole else "number"
    if metric is None or isinstance(metric, Text):
        return "text"
    return "flag" if isinstance(metric, Flag) else "numbers" if isinstance(metric, Numbers) else "words"
