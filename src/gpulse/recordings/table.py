"""A recording as a table: one row per sample and GPU, one column per metric, with types that data frames understand."""

from __future__ import annotations

import json

from ..errors import RecordingError
from ..model.catalog import GPU_METRICS
from ..model.codec import from_plain
from ..model.metric import Flag, Number, Numbers, Text
from ..model.select import metric_named
from ..sinks.packages import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal, TypeAlias

    import pandas
    import polars

    from ..model.snapshot import Snapshot

    Kind: TypeAlias = Literal["time", "integer", "number", "text", "flag", "words", "numbers"]

_FIRST = ("index", "uuid", "name", "state")  # after the time, in every table
_PROGRAM: dict[str, Kind] = {
    "elapsed": "number",
    "step": "integer",
    "phase": "text",
    "run": "text",
}  # what a Monitor adds to its samples
_INT64 = range(-(2**63), 2**63)


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
        whole = bool(known) and all(type(value) is int and value in _INT64 for value in known)
        return "integer" if whole else "number"
    if metric is None or isinstance(metric, Text):
        return "text"
    return "flag" if isinstance(metric, Flag) else "numbers" if isinstance(metric, Numbers) else "words"
