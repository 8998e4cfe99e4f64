"""The history as data: CSV, JSON and Parquet."""

from __future__ import annotations

from ...analysis.cost import usage_cost
from ...errors import GpulseError
from ...model.codec import parse_time, time_text
from ...present.events import event_text
from ...store.lines import replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...model.tariff import Tariff
    from ...store.history import Usage
    from .request import HistoryAnswer


def csv_lines(answer: HistoryAnswer) -> Iterator[str]:
    """Yield a header and a row for each moment and GPU: mean of each metric, then its least and most; an empty cell is no value."""
    keys = answer.asked.metrics
    yield ",".join(("time", "gpu", "uuid", *keys, *(f"{key}.{end}" for key in keys for end in ("min", "max"))))
    for row in _rows(answer):
        cells = [row["time"], row["gpu"], row["uuid"], *(row[key] for key in keys)]
        cells += [row[f"{key}.{end}"] for key in keys for end in ("min", "max")]
        yield ",".join(
            "" if cell is None else _digits(cell) if isinstance(cell, float) else str(cell) for cell in cells
        )


def to_plain(answer: HistoryAnswer, tariff: Tariff | None = None) -> dict[str, Any]:
    """Return everything as plain data; a value that is not there is null."""
    return {
        "from": time_text(answer.asked.start),
        "to": time_text(answer.asked.end),
        "times": [time_text(moment) for moment in answer.times],
        "gpus": [
            {
                "index": gpu.index,
                "uuid": gpu.uuid,
                "name": gpu.name,
                "series": {
                    key: {name: [_number(value) for value in getattr(series, name)] for name in ("min", "mean", "max")}
                    for key in answer.asked.metrics
                    if (series := answer.series(gpu, key)) is not None
                },
            }
            for gpu in answer.gpus
        ],
        "usage": _usage_rows(answer, tariff),
        "events": [
            {
                **event.to_plain(),
                "time": time_text(event.time),
                "until": None if event.until is None else time_text(event.until),
                "text": event_text(event),
            }
            for event in answer.events
        ],
    }


def _cost(use: Usage, tariff: Tariff | None) -> dict[str, Any]:
    """Return what somebody's usage cost, without keys where no prices are given."""
    cost = usage_cost(use, tariff)
    return {} if cost is None else {"cost": cost.total, "idle_cost": cost.idle, "carbon": cost.carbon}


def _usage_rows(answer: HistoryAnswer, tariff: Tariff | None) -> list[dict[str, Any]]:
    return [
        {
            answer.asked.by: use.owner,
            "gpu_hours": use.gpu_hours,
            "instance_hours": use.instance_hours,
            "busy_hours": use.busy_hours,
            "memory_gib_hours": use.memory_hours,
            "memory_most": use.memory_most,
            "energy_estimate": use.energy,
            **_cost(use, tariff),
            "processes": use.processes,
        }
        for use in answer.usage
    ]


def usage_csv(answer: HistoryAnswer, tariff: Tariff | None = None) -> Iterator[str]:
    """Yield who used what as CSV, a header first."""
    return _csv(_usage_rows(answer, tariff))


def events_csv(answer: HistoryAnswer) -> Iterator[str]:
    """Yield what happened as CSV, a header first."""
    return _csv(_event_rows(answer))


def _event_rows(answer: HistoryAnswer) -> list[dict[str, Any]]:
    return [
        {
            "time": time_text(event.time),
            "until": None if event.until is None else time_text(event.until),
            "kind": event.category,
            "severity": event.severity,
            "gpus": " ".join(event.gpus),
            "uuids": " ".join(event.uuids),
            "text": event_text(event),
        }
        for event in answer.events
    ]


def _csv(rows: list[dict[str, Any]]) -> Iterator[str]:
    import csv
    import io

    for cells in [[*rows[0]], *([*row.values()] for row in rows)] if rows else []:
        line = io.StringIO()
        written = ["" if cell is None else _digits(cell) if isinstance(cell, float) else cell for cell in cells]
        csv.writer(line, lineterminator="").writerow(written)
        yield line.getvalue()


def write_parquet(
    answer: HistoryAnswer, path: str, usage: bool = False, tariff: Tariff | None = None, events: bool = False
) -> None:
    """Write the rows of the CSV, who used what, or what happened, as Parquet; raise GpulseError when pyarrow is missing."""
    try:
        arrow = __import__("pyarrow")
        parquet = __import__("pyarrow.parquet", fromlist=["write_table"])
    except ImportError:
        raise GpulseError("Parquet needs pyarrow, which is not installed.", "Run `pip install pyarrow`.") from None
    rows = _event_rows(answer) if events else _usage_rows(answer, tariff) if usage else [*_rows(answer)]
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {"time": [], "gpu": [], "uuid": []}
    if "time" in columns:
        moments = [round(parse_time(text) * 1000) for text in columns["time"]]
        columns["time"] = arrow.array(moments, type=arrow.timestamp("ms", tz="UTC"))
    try:
        with replaced(path) as file:
            parquet.write_table(arrow.table(columns), file)
    except OSError as error:
        raise GpulseError(f"{path} cannot be written: {error.strerror or error}.") from None


def _rows(answer: HistoryAnswer) -> Iterator[dict[str, Any]]:
    times = answer.times
    for gpu in answer.gpus:
        found = {key: answer.series(gpu, key) for key in answer.asked.metrics}
        for at, moment in enumerate(times):
            row: dict[str, Any] = {"time": time_text(moment), "gpu": gpu.index, "uuid": gpu.uuid}
            for key, series in found.items():
                row[key] = None if series is None else _number(series.mean[at])
                row[f"{key}.min"] = None if series is None else _number(series.min[at])
                row[f"{key}.max"] = None if series is None else _number(series.max[at])
            if any(row[key] is not None for key in found):
                yield row


def _digits(value: float) -> str:
    """Write a number to the thousandth, without an exponent and without zeros at its end."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _number(value: float) -> float | None:
    return value if value == value else None
