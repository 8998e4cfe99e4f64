"""Timelines for a terminal: one row of blocks per GPU or chart over one axis of time; a gap in the recording is a gap in the row."""

from __future__ import annotations

from ...present.line import Line
from ...present.plot import mini
from ...present.quantities import elapsed_text, quantity_text
from ...present.text import clean, column_widths
from ...present.words import share_style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...present.theme import Theme
    from .charts import ChartLine, ReportChart
    from .document import Charts
    from .run import Run

_LEAST = 30  # blocks of a row; with less room its figures are left out


class _Row:
    """One row before it is laid out: its name, its line, and the least and the most of its values."""

    def __init__(self, name: str, chart: ReportChart, line: ChartLine, spans: Sequence[tuple[float, float, str]] = ()):
        self.name = clean(name)
        self.chart = chart
        self.line = line
        self.spans = spans
        _, low, high = line.trace.figures()
        words = dict.fromkeys((quantity_text(chart.unit, low), quantity_text(chart.unit, high)))
        self.range = " to ".join(words)


def timeline_lines(block: Charts, theme: Theme, room: int) -> list[Line]:
    """Return the activity of each GPU, then the other charts with the mean of all GPUs; of two runs, one row each."""
    rows = [
        _Row(strip.name, block.charts[strip.line[0]], block.charts[strip.line[0]].lines[strip.line[1]], strip.spans)
        for strip in block.strips
    ]
    drawn = {id(row.chart) for row in rows}
    for chart in block.charts:
        if id(chart) not in drawn:
            rows += [_Row(_name(chart, line), chart, line) for line in _lines(chart, block.runs)]
    if not rows:
        return []
    name = column_widths([[row.name] for row in rows])[0]
    figures = column_widths([[row.range] for row in rows])[0]
    if room - name - figures - 4 < _LEAST:
        figures = 0
    cells = max(_LEAST // 2, room - name - figures - (4 if figures else 2))
    seconds = max(run.end - run.start for run in block.runs)
    lines = []
    if block.strips:
        title = theme.spelled(f"{block.charts[block.strips[0].line[0]].title} of each GPU")
        lines.append(Line().add(title, "label"))
    for at, row in enumerate(rows):
        if at == len(block.strips) and at:
            lines += [_axis(seconds, name + 2, cells), Line(), Line().add("All GPUs and the host", "label")]
        line = Line().add(row.name, "", name).add("  ")
        line.extend(_blocks(row, block.runs[row.line.run], seconds, cells, theme))
        if figures:
            line.add("  ").add(theme.spelled(row.range), "label", figures, right=True)
        lines.append(line)
    return [*lines, _axis(seconds, name + 2, cells)]


def _lines(chart: ReportChart, runs: Sequence[Run]) -> list[ChartLine]:
    """Return what is drawn of a chart: the mean of its GPUs where it has several, else its lines."""
    from .charts import ChartLine, together

    gpus = [line for line in chart.lines if line.gpu]
    if len(runs) > 1 or len(gpus) < 2:
        return [*chart.lines]
    length = len(runs[0].timeline.at)
    return [ChartLine("", together([line.trace for line in gpus], length), 0)]


def _name(chart: ReportChart, line: ChartLine) -> str:
    if line.gpu or not line.name or len(chart.lines) == 1 or chart.title.endswith(line.name):
        return chart.title
    if "MIG" in chart.title:
        return f"{chart.title.partition(',')[0]}, MIG {line.name}"
    return line.name if line.name.startswith(chart.title) else f"{chart.title}, {line.name}"


def _blocks(row: _Row, run: Run, seconds: float, cells: int, theme: Theme) -> Line:
    """Return the row: one block per stretch of time, in the color of what happened to the GPU then."""
    timeline, trace, chart = run.timeline, row.line.trace, row.chart
    trace.reach(len(timeline.at))
    sums, counts = [0.0] * cells, [0] * cells
    scale = cells / max(seconds, 1e-9)
    last = max(0, min(cells - 1, int((run.end - run.start) * scale)))
    for point, place in enumerate(timeline.at):
        first = min(last, int(place * timeline.width * scale))
        following = timeline.at[point + 1] if point + 1 < len(timeline.at) else place + 1
        if point + 1 in timeline.breaks:
            following = place + 1
        for cell in range(first, max(first + 1, min(last + 1, int(following * timeline.width * scale)))):
            sums[cell] += trace.sums[point]
            counts[cell] += trace.counts[point]
    line = Line()
    for cell in range(cells):
        if not counts[cell]:
            line.add(" ")
            continue
        share = (sums[cell] / counts[cell] - chart.low) / (chart.high - chart.low)
        line.add(mini(share, theme.unicode), _style(row, cell / scale, (cell + 1) / scale, share))
    return line


def _style(row: _Row, start: float, end: float, share: float) -> str:
    levels = {level for first, until, level in row.spans if first < end and until >= start}
    for level in ("critical", "warn"):
        if level in levels:
            return level
    return share_style(100 * share) if row.chart.unit == "%" else "memory"


def _axis(seconds: float, indent: int, cells: int) -> Line:
    """Return the time since the start at the beginning, in the middle and at the end of the rows."""
    first, middle, last = (elapsed_text(int(seconds * part)) for part in (0.0, 0.5, 1.0))
    line = Line().to(indent).add(first, "label")
    if cells >= len(first) + len(middle) + len(last) + 6:
        line.to(indent + cells // 2 - len(middle) // 2).add(middle, "label")
    return line.to(indent + cells - len(last)).add(last, "label")
