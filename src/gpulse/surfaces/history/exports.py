"""The history, or a recording, as data: CSV, JSON and Parquet."""

from __future__ import annotations

from ...analysis.cost import usage_cost
from ...errors import UsageError
from ...model.catalog import GPU_METRICS
from ...model.codec import time_text
from ...model.select import choose_gpus, metric_named
from ...model.snapshot import Snapshot
from ...present.events import event_text
from ...store.lines import digits
from ...store.recording import is_pipe, read_recording
from ...units import BYTES, COUNT, MEGAHERTZ
from .tables import process_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...model.serving import Tariff
    from ...store.history import Usage
    from .tables import HistoryAnswer


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
        "processes": table_rows(answer, "processes"),
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


def table_rows(answer: HistoryAnswer, what: str, tariff: Tariff | None = None) -> list[dict[str, Any]]:
    """Return the `usage`, `events` or `processes` as rows, all with the same keys."""
    if what == "processes":
        return [row | {key: time_text(row[key]) for key in ("first", "last")} for row in process_rows(answer)]
    return _event_rows(answer) if what == "events" else _usage_rows(answer, tariff)


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


def parquet_columns(answer: HistoryAnswer, what: str = "", tariff: Tariff | None = None) -> dict[str, list[Any]]:
    """Return rows as columns: those of `table_rows`, or of the CSV of values."""
    rows = table_rows(answer, what, tariff) if what else [*_rows(answer)]
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


_HEAD = ("time", "gpu", "uuid", "state")
_SQLITE = b"SQLite format 3\0"


def is_recording(path: str) -> bool:
    """Return whether a file holds something that is not a database of the history; a pipe never is one."""
    if is_pipe(path):
        return True
    try:
        with open(path, "rb") as file:
            start = file.read(len(_SQLITE))
    except OSError:
        return False  # opening it as a history reports why it cannot be read
    return bool(start) and start != _SQLITE


class RecordedTable:
    """Samples as rows: those that `samples` yields each time it is called; `metrics` chooses columns, all that occur if empty.

    `path` is what errors call their origin.
    """

    def __init__(self, path: str, samples: Callable[[], Iterable[Snapshot]], metrics: Sequence[str] = ()) -> None:
        self._path = path
        self._samples = samples
        self.keys = [metric_named(name).key for name in metrics] or self._occurring()

    def csv_lines(self) -> Iterator[str]:
        """Yield a header and the rows; an empty cell is no value."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow((*_HEAD, *self.keys))
        for row in self.rows():
            writer.writerow(["" if cell is None else cell for cell in row])
            if out.tell() > 1 << 16:
                yield out.getvalue().rstrip("\n")
                out.seek(0)
                out.truncate()
        if text := out.getvalue().rstrip("\n"):
            yield text

    def rows(self) -> Iterator[list[Any]]:
        """Yield time, number, UUID and state of the GPU, and its values."""
        whole = [_is_whole(key) for key in self.keys]
        for snapshot in self._samples():
            for gpu in snapshot.gpus:
                head = [time_text(snapshot.time), gpu.index, gpu.uuid, gpu.state]
                yield head + [_cell(gpu.get(key), integer) for key, integer in zip(self.keys, whole, strict=True)]

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns."""
        rows = [*self.rows()]
        return {name: [row[at] for row in rows] for at, name in enumerate((*_HEAD, *self.keys))}

    def _occurring(self) -> list[str]:
        found = {key for snapshot in self._samples() for gpu in snapshot.gpus for key, _ in gpu.items()}
        known = [key for key, metric in GPU_METRICS.items() if key in found and metric.kind != "identity"]
        if not known:
            raise UsageError(f"{self._path} contains no samples of a GPU;", "name another file.")
        return known


def samples_of(
    path: str,
    start: float | None,
    end: float | None,
    words: Sequence[str],
    environ: Mapping[str, str],
    damaged: list[int] | None = None,
) -> Iterator[Snapshot]:
    """Yield the samples of a recording between two times with the GPUs that `words` name; `damaged` as in `read_lines`."""
    for snapshot in read_recording(path, damaged):
        if (start is not None and snapshot.time < start) or (end is not None and snapshot.time >= end):
            continue
        gpus = snapshot.gpus
        if words:
            gpus = tuple(gpus[at] for at in choose_gpus(gpus, words, environ))
        yield Snapshot(snapshot.time, gpus)


def _is_whole(key: str) -> bool:
    """Return whether a metric counts something: a history gives such values as floats."""
    return getattr(GPU_METRICS.get(key), "unit", None) in (BYTES, COUNT, MEGAHERTZ)


def _cell(value: Any, integer: bool) -> Any:
    """Return a value as one cell; several words are separated by spaces."""
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value))
    return int(value) if integer and isinstance(value, float) and value.is_integer() else value
