"""The history, or a recording, as data (CSV, JSON) and as plots in the terminal."""

from __future__ import annotations

import time

from ...analysis.energy import usage_cost
from ...errors import UsageError
from ...model.catalog import GPU_METRICS
from ...model.codec import time_text
from ...model.select import choose_gpus, metric_named
from ...model.snapshot import Snapshot
from ...present.cells import period_text, value_text
from ...present.events import event_text
from ...present.line import Line
from ...present.plot import ascii_spans, braille_spans, mini
from ...present.text import clean
from ...present.words import product_name, share_style
from ...store.lines import csv_rows
from ...store.recording import is_pipe, read_recording
from ...units import BYTES, COUNT, MEGAHERTZ, PERCENT, duration_text
from .tables import label, over_time, process_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...model.metric import Metric
    from ...model.serving import Tariff
    from ...present.plot import Span
    from ...present.theme import Theme
    from ...store.history import GpuIdentity, HistorySeries, Usage
    from .tables import HistoryAnswer


def csv_lines(answer: HistoryAnswer) -> Iterator[str]:
    """Return a header and a row for each moment and GPU: mean of each metric, then its least and most; an empty cell is no value."""
    keys = answer.asked.metrics
    names = ("time", "gpu", "uuid", *keys, *(f"{key}.{end}" for key in keys for end in ("min", "max")))
    return csv_rows(_rows(answer), names)


def to_plain(answer: HistoryAnswer, tariff: Tariff | None = None) -> dict[str, Any]:
    """Return everything as plain data; a value that is not there is null."""
    return {
        "from": time_text(answer.asked.start),
        "to": time_text(answer.asked.end),
        "times": [time_text(moment) for moment in answer.times],
        "gaps": [[time_text(first), time_text(last)] for first, last in answer.gaps],
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


_AXIS = 10
_ROWS = 5
_STRIP = "utilization"


def columns_for(width: int, theme: Theme) -> int:
    """Return how many points a plot of this width shows."""
    return max(1, width - _AXIS) * (2 if theme.unicode else 1)


def plots(answer: HistoryAnswer, width: int, theme: Theme) -> list[Line]:
    """Return the time they cover, then a plot for each metric of each GPU with its figures and its axis of time."""
    lines: list[Line] = []
    for key in answer.asked.metrics:
        metric = GPU_METRICS[key]
        for gpu in answer.gpus:
            if drawn := [*_plot(answer, gpu, metric, width, theme)]:
                lines += [Line(), *drawn, _axis(answer, _AXIS, width - _AXIS)]
    start, end = answer.asked.start, answer.asked.end
    covers = Line().add(period_text(start, end), "title").add(f"  {duration_text(end - start)}", "label")
    return [covers, *lines] if lines else []


def strips(answer: HistoryAnswer, width: int, theme: Theme) -> list[Line]:
    """Return a heat strip for each GPU over one axis of time: how busy it was, in the color of what happened, and who held it."""
    metric = GPU_METRICS[_STRIP if _STRIP in answer.asked.metrics else answer.asked.metrics[0]]
    known = [(gpu, series) for gpu in answer.gpus if (series := answer.series(gpu, metric.key)) is not None]
    if not known:
        return []
    names = max(len(f"GPU {label(gpu)}") for gpu, _ in known)
    holders = {gpu.uuid: _holders(answer, gpu) for gpu, _ in known}
    room = max((len(text) for text in holders.values()), default=0)
    room = min(room, max(12, width // 3))
    cells = max(10, width - names - room - 4)
    lines = [Line().add(f"{metric.title} of each GPU", "label")]
    for gpu, series in known:
        found = over_time(series)
        high = 0.0 if found is None else _scale(metric, found.max, gpu)[1]
        line = Line().add(f"GPU {label(gpu)}", "", names).add("  ")
        lines.append(
            line.extend(_strip(answer, gpu, series, cells, high, theme)).add("  ").add(holders[gpu.uuid], "label", room)
        )
    return [*lines, _axis(answer, names + 2, cells)]


def _strip(
    answer: HistoryAnswer, gpu: GpuIdentity, series: HistorySeries, cells: int, high: float, theme: Theme
) -> Line:
    means = _means(answer, series, cells)
    start, step = answer.asked.start, (answer.asked.end - answer.asked.start) / cells
    line = Line()
    for at, mean in enumerate(means):
        share = None if mean is None or not high else mean / high
        level = _level(answer, gpu, start + at * step, start + (at + 1) * step)
        line.add(mini(share, theme.unicode) if share is not None else " ", level or share_style(100 * (share or 0.0)))
    return line


def _means(answer: HistoryAnswer, series: HistorySeries, cells: int) -> list[float | None]:
    """Return the mean of each cell by the time that values stand for; None where there are none."""
    sums, weights = [0.0] * cells, [0.0] * cells
    start, scale = answer.asked.start, cells / (answer.asked.end - answer.asked.start)
    places = [min(cells - 1, max(0, int((moment - start) * scale))) for moment in series.times]
    for at, (mean, seconds) in enumerate(zip(series.mean, series.seconds, strict=True)):
        if mean != mean:
            continue
        last = places[at + 1] if at + 1 < len(places) else places[at] + 1
        for cell in range(places[at], max(places[at] + 1, last)):
            sums[cell] += mean * (seconds or 1.0)
            weights[cell] += seconds or 1.0
    return [total / weight if weight else None for total, weight in zip(sums, weights, strict=True)]


def _level(answer: HistoryAnswer, gpu: GpuIdentity, start: float, end: float) -> str:
    """Return the worst of what happened to a GPU between two times: critical, warn, or nothing."""
    found = {
        event.severity
        for event in answer.events
        if gpu.uuid in event.uuids and event.time < end and max(event.time, event.until or event.time) >= start
    }
    return next((level for level in ("critical", "warn") if level in found), "")


def _holders(answer: HistoryAnswer, gpu: GpuIdentity) -> str:
    """Return who held a GPU, the longest first."""
    seconds: dict[str, float] = {}
    for use in answer.processes:
        if use.uuid == gpu.uuid:
            user = clean(use.text.get("user") or "?")
            seconds[user] = seconds.get(user, 0.0) + use.held
    return ", ".join(
        f"{user} {duration_text(seconds[user])}" for user in sorted(seconds, key=lambda user: -seconds[user])
    )


def _plot(answer: HistoryAnswer, gpu: GpuIdentity, metric: Metric, width: int, theme: Theme) -> Iterator[Line]:
    series = answer.series(gpu, metric.key)
    found = over_time(series)
    if series is None or found is None:
        return
    head = f"GPU {label(gpu)} {product_name(gpu.name or '')} · {metric.title}"
    figures = f"mean {value_text(metric, found.mean)}, max {value_text(metric, found.max)}"
    yield Line().add(head, "title").add(f"  {figures}", "label")
    low, high = _scale(metric, found.max, gpu)
    spans = _spans(series, answer, columns_for(width, theme))
    rows = braille_spans(spans, _ROWS, low, high) if theme.unicode else ascii_spans(spans, _ROWS, low, high)
    for at, row in enumerate(rows):
        axis = value_text(metric, high) if at == 0 else value_text(metric, low) if at == _ROWS - 1 else ""
        yield Line().add(axis, "label", _AXIS - 1, right=True).add(" ").add(row[: width - _AXIS], "good")


def _spans(series: HistorySeries, answer: HistoryAnswer, columns: int) -> list[Span]:
    """Return lowest and highest for each column of the stretch that was asked for, which may begin before the records do.

    A value holds until the next one, which may be a hole; the last one as long as the one before it.
    """
    spans: list[Span] = [None] * columns
    start, scale = answer.asked.start, columns / (answer.asked.end - answer.asked.start)
    places = [int((moment - start) * scale) for moment in series.times]
    places.append(2 * places[-1] - places[-2] if len(places) > 1 else places[-1])
    for at, (low, high) in enumerate(zip(series.min, series.max, strict=True)):
        if low != low or high != high:
            continue
        for column in range(max(0, places[at]), min(columns, max(places[at] + 1, places[at + 1]))):
            before = spans[column]
            spans[column] = (low, high) if before is None else (min(low, before[0]), max(high, before[1]))
    return spans


def _scale(metric: Metric, most: float, gpu: GpuIdentity) -> tuple[float, float]:
    if metric.unit is PERCENT and metric.high == 100:
        return 0.0, 100.0
    if metric.key == "memory_used" and gpu.memory_total:
        return 0.0, gpu.memory_total
    return 0.0, max(most, 1e-9)


def _axis(answer: HistoryAnswer, indent: int, room: int) -> Line:
    """Return first, middle and last time, with the date where the plot covers several days."""
    start, end = answer.asked.start, answer.asked.end
    days = time.localtime(start)[:3] != time.localtime(end)[:3]
    form = ("%m-%d " if days else "") + ("%H:%M:%S" if end - start < 600 else "%H:%M")
    first, middle, last = (time.strftime(form, time.localtime(moment)) for moment in (start, (start + end) / 2, end))
    line = Line().add(" " * indent).add(first, "label")
    if room >= 3 * len(first) + 4:
        line.to(indent + room // 2 - len(middle) // 2).add(middle, "label")
    return line.to(indent + room - len(last)).add(last, "label")
