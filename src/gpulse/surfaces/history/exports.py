"""The history as data: CSV, JSON and Parquet."""

from __future__ import annotations

from ...analysis.cost import usage_cost
from ...model.codec import time_text
from ...present.events import event_text
from ...store.lines import csv_rows, digits
from .tables import process_rows

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
        yield ",".join("" if cell is None else digits(cell) if isinstance(cell, float) else str(cell) for cell in cells)


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
        "processes": [row | {key: time_text(row[key]) for key in ("first", "last")} for row in process_rows(answer)],
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
    return csv_rows(_usage_rows(answer, tariff))


def events_csv(answer: HistoryAnswer) -> Iterator[str]:
    """Yield what happened as CSV, a header first."""
    return csv_rows(_event_rows(answer))


def processes_csv(answer: HistoryAnswer) -> Iterator[str]:
    """Yield the processes as CSV, a header first."""
    return csv_rows([row | {key: time_text(row[key]) for key in ("first", "last")} for row in process_rows(answer)])


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


def parquet_columns(
    answer: HistoryAnswer, usage: bool = False, tariff: Tariff | None = None, events: bool = False
) -> dict[str, list[Any]]:
    """Return the rows of the CSV, who used what, or what happened, as columns."""
    rows = _event_rows(answer) if events else _usage_rows(answer, tariff) if usage else [*_rows(answer)]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {"time": [], "gpu": [], "uuid": []}


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


def _number(value: float) -> float | None:
    return value if value == value else None
