"""The history as plots in the terminal: one per metric and GPU, each with its axis of time; spikes stay visible, gaps stay empty."""

from __future__ import annotations

import time

from ...model.catalog import GPU_METRICS
from ...present.cells import value_text
from ...present.line import Line
from ...present.plot import ascii_spans, braille_spans
from ...present.quantities import period_text
from ...present.words import product_name
from ...units import PERCENT, duration_text
from .statistics import over_time
from .tables import label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.metric import Metric
    from ...present.plot import Span
    from ...present.theme import Theme
    from ...store.history import GpuIdentity, HistorySeries
    from .request import HistoryAnswer

_AXIS = 10
_ROWS = 5


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
                lines += [Line(), *drawn, _times(answer, width)]
    return [_covers(answer), *lines] if lines else []


def _covers(answer: HistoryAnswer) -> Line:
    """Return the time that the plots cover, by this machine's clock."""
    start, end = answer.asked.start, answer.asked.end
    return Line().add(period_text(start, end), "title").add(f"  {duration_text(end - start)}", "label")


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


def _times(answer: HistoryAnswer, width: int) -> Line:
    """Return the axis of one plot: first, middle and last time, with the date where the plot covers several days."""
    start, end, room = answer.asked.start, answer.asked.end, width - _AXIS
    days = time.localtime(start)[:3] != time.localtime(end)[:3]
    form = ("%m-%d " if days else "") + ("%H:%M:%S" if end - start < 600 else "%H:%M")
    first, middle, last = (time.strftime(form, time.localtime(moment)) for moment in (start, (start + end) / 2, end))
    line = Line().add(" " * _AXIS).add(first, "label")
    if room >= 3 * len(first) + 4:
        line.to(_AXIS + room // 2 - len(middle) // 2).add(middle, "label")
    return line.to(_AXIS + room - len(last)).add(last, "label")
