"""The history as plots in the terminal: one per metric and GPU, each with its axis of time; spikes stay visible, gaps stay empty."""

from __future__ import annotations

import time

from ...model.catalog import GPU_METRICS
from ...present.cells import period_text, value_text
from ...present.line import Line
from ...present.plot import ascii_spans, braille_spans, mini
from ...present.text import clean
from ...present.words import product_name, share_style
from ...units import PERCENT, duration_text
from .tables import label, over_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.metric import Metric
    from ...present.plot import Span
    from ...present.theme import Theme
    from ...store.history import GpuIdentity, HistorySeries
    from .tables import HistoryAnswer

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
    held = {gpu.uuid: _holders(answer, gpu) for gpu, _ in known}
    room = max((len(text) for text in held.values()), default=0)
    room = min(room, max(12, width // 3))
    cells = max(10, width - names - room - 4)
    lines = [Line().add(f"{metric.title} of each GPU", "label")]
    for gpu, series in known:
        found = over_time(series)
        high = 0.0 if found is None else _scale(metric, found.max, gpu)[1]
        line = Line().add(f"GPU {label(gpu)}", "", names).add("  ")
        lines.append(
            line.extend(_strip(answer, gpu, series, cells, high, theme)).add("  ").add(held[gpu.uuid], "label", room)
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
        last = places[at + 1] if at + 1 < len(places) and series.mean[at + 1] == series.mean[at + 1] else places[at] + 1
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
    held: dict[str, float] = {}
    for use in answer.processes:
        if use.uuid == gpu.uuid:
            user = clean(use.text.get("user") or "?")
            held[user] = held.get(user, 0.0) + use.held
    return ", ".join(f"{user} {duration_text(held[user])}" for user in sorted(held, key=lambda user: -held[user]))


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
