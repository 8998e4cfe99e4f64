"""Parquet files, written with the pyarrow or polars that the user has."""

from __future__ import annotations

from ..errors import GpulseError
from ..model.codec import parse_time
from .lines import PRIVATE, replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def write_parquet(columns: Mapping[str, Sequence[Any]], path: str, mode: int = PRIVATE) -> None:
    """Write columns as a file; a column `time` holds RFC 3339 and becomes timestamps. Raise GpulseError if neither library is installed."""
    moments = [round(parse_time(text) * 1_000_000) for text in columns.get("time", ())]
    try:
        arrow = __import__("pyarrow")
        parquet = __import__("pyarrow.parquet", fromlist=["write_table"])
    except ImportError:
        _with_polars(columns, moments, path, mode)
        return
    times = {"time": arrow.array(moments, type=arrow.timestamp("us", tz="UTC"))} if "time" in columns else {}
    _saved(lambda file: parquet.write_table(arrow.table({**columns, **times}), file), path, mode)


def _with_polars(columns: Mapping[str, Sequence[Any]], moments: list[int], path: str, mode: int) -> None:
    try:
        polars = __import__("polars")
    except ImportError:
        message = "Parquet needs pyarrow or polars, and neither is installed."
        raise GpulseError(message, "Run `pip install pyarrow`.") from None
    frame = polars.DataFrame({**columns, **({"time": moments} if "time" in columns else {})}, infer_schema_length=None)
    if "time" in columns:
        frame = frame.with_columns(polars.col("time").cast(polars.Datetime("us", "UTC")))
    _saved(frame.write_parquet, path, mode)


def _saved(write: Any, path: str, mode: int) -> None:
    try:
        with replaced(path, mode) as file:
            write(file)
    except OSError as error:
        raise GpulseError(f"{path} cannot be written: {error.strerror or error}.") from None
