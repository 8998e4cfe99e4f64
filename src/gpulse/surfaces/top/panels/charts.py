"""The charts: a metric each over the last minutes, of one GPU or the mean of all."""

from __future__ import annotations

from itertools import repeat

from ....model.catalog import CURVES, GPU_METRICS, Gpu
from ....present.cells import MISSING, clock_text, is_absent, value_text, why_absent
from ....present.plot import ASCII_SHADE, SHADE, ascii_spans, braille_cells
from ....present.text import fit, width
from ....present.words import degrees
from ....screen.grid import draw, draw_styled
from ....units import BYTES, BYTES_PER_SECOND, CELSIUS, PERCENT, size_text
from ....value import Value
from ..history import mean, traces
from ..layout import Area, split
from ..state import SPANS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....model.metric import Metric
    from ....present.plot import Span
    from ....screen.grid import Grid
    from ..state import State


_NARROWEST, _LOWEST = 24, 5  # columns and rows of a chart
_AXIS = 5  # columns of the scale at the left
_ROOMY = (34, 9)  # columns and rows of a chart on a maximized panel, which has as many charts as fit
_NAN = float("nan")


class Chart:
    """One chart made ready: its metric, its place, its scale and its trace."""

    def __init__(self, area: Area, state: State, choice: ChartChoice, gpus: tuple[Gpu, ...]) -> None:
        metric = choice.metric
        self.area = area
        self.metric = metric
        self.note = choice.note
        self.gpus = gpus
        noted = 1 if choice.note and area.rows >= _LOWEST else 0
        self.plot = Area(area.row + 1 + noted, area.column + _AXIS, area.rows - 2 - noted, area.columns - _AXIS)
        self.span = float(SPANS[state.span % len(SPANS)][0])
        self.end = state.shown.time if state.shown else state.now
        dots = max(1, self.plot.columns * (2 if state.theme.unicode else 1))
        # A slot is never shorter than the time between samples, or every other one would be a hole.
        self.wide = max(1, -(-int(dots * state.settings.interval) // int(self.span)))
        self.count = -(-dots // self.wide)
        self.slot = self.span / dots * self.wide
        indexes = tuple(int(gpu.index or 0) for gpu in gpus)
        trace = traces.trace(state.history, indexes, metric.key, self.slot)
        trace.follow(state.history, self.end - self.span - 2 * self.slot, state.settings.interval)
        self.slots = trace.slots(self.end, self.count)
        seen = [slot for slot in self.slots if slot is not None]
        self.lowest, self.highest = (min(seen)[0], max(high for _, high, _ in seen)) if seen else (_NAN, _NAN)
        self.low, self.high = 0.0, self._top()

    def _top(self) -> float:
        if self.metric.unit is PERCENT or self.metric.unit is CELSIUS:
            return max(100.0, 0.0 if self.highest != self.highest else self.highest)
        if limit := self.metric.whole or self.metric.limit:
            known = [value for value in (gpu.get(limit) for gpu in self.gpus) if isinstance(value, (int, float))]
            if known:
                return max(max(known), 0.0 if self.highest != self.highest else self.highest)
        return _round_up(self.highest, self.metric.unit is BYTES or self.metric.unit is BYTES_PER_SECOND)

    def spans(self) -> list[Span]:
        """Return the columns of dots to draw; a slot of several is its reach first, then its last value."""
        if self.wide == 1:
            return [None if slot is None else slot[:2] for slot in self.slots]
        found: list[Span] = []
        for slot in self.slots:
            found += [None] * self.wide if slot is None else (slot[:2], *[(slot[2], slot[2])] * (self.wide - 1))
        return found

    def moment(self, column: int) -> float | None:
        """Return the time a column of the screen stands for, None outside the plot."""
        if not self.plot.column <= column < self.plot.column + self.plot.columns:
            return None
        return self.end - (self.plot.column + self.plot.columns - 1 - column) / self.plot.columns * self.span

    def at(self, moment: float) -> float:
        """Return the value at a moment: the last of its slot, NaN if there is none."""
        place = int(moment // self.slot) - int(self.end // self.slot) - 1 + self.count
        slot = self.slots[max(0, min(self.count - 1, place))]
        return _NAN if slot is None else slot[2]

    def now(self) -> float:
        """Return the value at the moment shown."""
        return mean([_number(gpu.get(self.metric.key)) for gpu in self.gpus])


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the chosen metrics, as many as fit, side by side where there is width and below each other where not."""
    _draw(grid, _charts(area, state), state)


def paint_gpu(grid: Grid, area: Area, state: State, gpu: Gpu, more: bool = False) -> None:
    """Draw charts of one GPU: the chosen metrics, and with `more` the others that it has, as many as fit."""
    if gpu.state == "ok":
        _draw(grid, _laid(area, state, chosen(state, (gpu,), more), (gpu,)), state, whose=False)


def _draw(grid: Grid, charts: list[Chart], state: State, whose: bool = True) -> None:
    moment = None
    if state.cursor is not None:
        moment = next((found for chart in charts if (found := chart.moment(state.cursor)) is not None), None)
    for chart in charts:
        _chart(grid, chart, state, metric_style(chart.metric), moment, whose)


def _charts(area: Area, state: State) -> list[Chart]:
    gpus = state.shown.gpus if state.shown else ()
    if state.chart_gpu is not None:
        gpus = tuple(gpu for gpu in gpus if gpu.index == state.chart_gpu)
    return _laid(area, state, chosen(state, gpus, state.enlarged == "charts"), gpus)


def _laid(area: Area, state: State, choices: list[ChartChoice], gpus: tuple[Gpu, ...]) -> list[Chart]:
    """Return as many charts as fit, in rows; extra ones of a maximized panel only where there is plenty of room."""
    if area.rows < 3 or area.columns < _AXIS + 4 or not choices:
        return []
    own = len(state.settings.charts)
    roomy = max(1, (area.columns + 2) // (_ROOMY[0] + 2)) * max(1, area.rows // _ROOMY[1])
    choices = choices[: max(own, roomy)]
    across = max(1, min(len(choices), (area.columns + 2) // (_NARROWEST + 2)))
    if len(choices) > own:
        across = min(across, max(1, (area.columns + 2) // (_ROOMY[0] + 2)))
    down = max(1, min(-(-len(choices) // across), area.rows // _LOWEST))
    across = min(across, -(-len(choices) // down)) if down * across >= len(choices) else across
    charts: list[Chart] = []
    for at in range(down):
        mine = choices[at * across : (at + 1) * across]
        start, end = at * area.rows // down, (at + 1) * area.rows // down
        places = split(Area(area.row + start, area.column, end - start, area.columns), len(mine))
        charts += [Chart(place, state, choice, gpus) for place, choice in zip(places, mine, strict=True)]
    return charts


def _chart(grid: Grid, chart: Chart, state: State, style: str, moment: float | None, whose: bool) -> None:
    _head(grid, chart, state, style, moment, whose)
    if chart.plot.row > chart.area.row + 1:
        note = fit(chart.note, chart.area.columns, state.theme.more)
        draw(grid, chart.area.row + 1, chart.area.column, note, "label")
    plot, spans = chart.plot, chart.spans()
    dots = plot.columns * (2 if state.theme.unicode else 1)
    shade = state.theme.glyph(SHADE, ASCII_SHADE)
    make: Callable[..., Sequence[Sequence[str]]] = braille_cells if state.theme.unicode else ascii_spans
    shaded = {shade: "track"}
    for at, cells in enumerate(make(spans[-dots:], plot.rows, chart.low, chart.high)):
        count = cells.count(shade)
        if 0 < count < len(cells):
            draw_styled(grid, plot.row + at, plot.column, cells, list(map(shaded.get, cells, repeat(style))))
        else:
            draw(grid, plot.row + at, plot.column, cells, "track" if count else style)
    _scale(grid, chart, state)
    _times(grid, chart, state)
    if moment is not None:
        column = plot.column + plot.columns - 1 - round((chart.end - moment) / chart.span * plot.columns)
        for row in range(plot.row, plot.end):
            if grid.chars[row][column] == " ":
                draw(grid, row, column, state.theme.glyph("│", "|"), "accent")
            else:
                grid.restyle(row, column, 1, "accent")


def _head(grid: Grid, chart: Chart, state: State, style: str, moment: float | None, named: bool) -> None:
    """Draw the title: metric and whose, a rule, then lowest and highest of the span and the value now or under the cursor."""
    area, theme = chart.area, state.theme
    row, end = area.row, area.column + area.columns
    value = chart.now() if moment is None else chart.at(moment)
    facts = [(_text(chart.metric, value, state), style)]
    if moment is not None:
        facts.append((clock_text(moment), "accent"))
    known = sum(gpu.get(chart.metric.key) is not None for gpu in chart.gpus)
    title = fit(chart.metric.title, area.columns, theme.more)
    whose = f"mean of {known}" if len(chart.gpus) > 1 else ""
    if not named:
        whose = ""
    elif state.chart_gpu is not None:
        whose = f"GPU {state.chart_gpu}"
    reach = ""
    if chart.lowest == chart.lowest:
        ends = [_bare(chart.metric, value, state) for value in (chart.lowest, chart.highest)]
        reach = theme.glyph("–", "-").join(ends)
    room = area.columns - width(title) - sum(2 + width(text) for text, _ in facts) - 2
    if whose and room > len(whose) + 1:
        room -= len(whose) + 1
    else:
        whose = ""
    if reach and room > width(reach) + 2:
        facts.insert(0, (reach, "label"))
    column = grid.put(row, area.column, title, "title", area.columns) + 1
    if whose:
        column = draw(grid, row, column, whose, "label") + 1
    draw_facts(grid, state, row, column, end, facts)


def draw_facts(grid: Grid, state: State, row: int, column: int, end: int, facts: list[tuple[str, str]]) -> None:
    """Draw the rest of a title: a rule, and facts at its end."""
    more = 1 if facts else 0
    start = end - sum(2 + width(text) for text, _ in facts) + more
    draw(grid, row, column, state.theme.glyph("─", "-") * (start - column), "border")
    column = start + more
    for text, style in facts:
        column = grid.put(row, column, text, style, end - column) + 2


def _scale(grid: Grid, chart: Chart, state: State) -> None:
    plot = chart.plot
    marks = {plot.row: chart.high, plot.end - 1: chart.low}
    if plot.rows >= (5 if plot.rows % 2 else 8):
        marks[plot.row + plot.rows // 2] = (chart.low + chart.high) / 2
    for row, value in marks.items():
        text = f"{_bare(chart.metric, value, state):>{_AXIS - 1}}"[: _AXIS - 1]
        draw(grid, row, chart.area.column, text, "faint")


def _times(grid: Grid, chart: Chart, state: State) -> None:
    """Draw the time axis: how long ago the left edge is, half of it, and now, or the time shown when that is not now."""
    plot, row = chart.plot, chart.area.end - 1
    live = not (state.back or state.paused or state.stale)
    right = "now" if live else clock_text(chart.end)
    left = f"-{_ago(chart.span)}"
    middle = f"-{_ago(chart.span / 2)}"
    draw(grid, row, plot.column, left, "faint")
    draw(grid, row, plot.column + plot.columns - len(right), right, "faint")
    if plot.columns >= len(left) + len(right) + len(middle) + 12:
        draw(grid, row, plot.column + plot.columns // 2 - len(middle) // 2, middle, "faint")


def _ago(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:g} min" if seconds < 5400 else f"{seconds / 3600:g} h"


def _text(metric: Metric, value: float, state: State) -> str:
    if value != value:
        return MISSING
    if metric.unit is CELSIUS:
        return degrees(value, state.theme, state.settings.fahrenheit)
    return state.theme.spelled(value_text(metric, round(value, 1), state.settings.decimal))


def _bare(metric: Metric, value: float, state: State) -> str:
    """Return a value without its unit, for a scale; sizes keep a letter of it."""
    if metric.unit is CELSIUS and state.settings.fahrenheit:
        value = value * 1.8 + 32
    if metric.unit is BYTES or metric.unit is BYTES_PER_SECOND:
        number, unit = size_text(value, decimal=state.settings.decimal).split()
        short = f"{float(number):.0f}" if float(number) >= 10 else f"{float(number):g}"
        return short if not value or unit == "B" else f"{short}{unit[0].upper()}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _round_up(value: float, binary: bool) -> float:
    """Return the next round number, so that a scale changes seldom."""
    if not 0 < value < 1e300:
        return 1.0
    unit = 1.0
    while binary and value / unit >= 1024.0:
        unit *= 1024.0
    step = 1.0
    while value / unit / step > 10:
        step *= 10
    while value / unit / step <= 1:
        step /= 10
    return next(one for one in (2.0, 5.0, 10.0) if value / unit / step <= one) * step * unit


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else _NAN


# What still tells how busy a GPU is that cannot measure its activity, best first.
_INSTEAD = ("power_draw", "temperature", "clock_sm", "memory_percent", "memory_used")
# The color of a metric is the same in bars, charts and the view of a GPU.
_STYLES = {
    "memory": "memory", "power": "chart3", "thermal": "chart3", "clocks": "chart3", "links": "chart4"
}  # fmt: skip


class ChartChoice(Value):
    """A metric to draw; `note` says which other metric it replaces and why, or is empty."""

    metric: Metric
    note: str = ""


def metric_style(metric: Metric) -> str:
    """Return the style of a metric's bars and charts."""
    return _STYLES.get(metric.group, "busy")


def chosen(state: State, gpus: Sequence[Gpu], more: bool = False) -> list[ChartChoice]:
    """Return the metrics of the settings, absent ones replaced; with `more`, then all others that these GPUs have."""
    keys = [key for key in state.settings.charts if key in GPU_METRICS]
    present = [key for key in keys if not is_absent(key, gpus)]
    spare = [key for key in _INSTEAD if key not in keys and _has(key, gpus)]
    found = []
    for key in keys:
        if key in present:
            found.append(ChartChoice(GPU_METRICS[key]))
        elif spare:
            note = f"{GPU_METRICS[key].title}: {why_absent(key, gpus)}"
            found.append(ChartChoice(GPU_METRICS[spare.pop(0)], note))
    if more:
        drawn = {choice.metric.key for choice in found}
        found += [ChartChoice(GPU_METRICS[key]) for key in CURVES if key not in drawn and _has(key, gpus)]
    return found or [ChartChoice(GPU_METRICS[key], why_absent(key, gpus)) for key in keys[:1]]


def _has(key: str, gpus: Sequence[Gpu]) -> bool:
    return any(gpu.get(key) is not None for gpu in gpus)
