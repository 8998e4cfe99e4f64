"""A document laid out for a terminal: wrapped sentences, tables in which nothing is cut off, and timelines as wide as the screen."""

from __future__ import annotations

from ...present.cells import elapsed_text, quantity_text
from ...present.line import Line, gauge, wrapped_lines
from ...present.plot import mini
from ...present.text import clean, column_widths, width, wrap
from ...present.verdicts import budget_bar, budget_legend
from ...present.words import share_style
from .document import Charts, Figure, Lines, Loud, TableBlock, Tiles, TimeBars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from ...present.line import Piece
    from ...present.theme import Theme
    from .charts import ChartLine, ReportChart
    from .document import Block, Cell, Document
    from .run import Run

    Told: TypeAlias = list[Piece]  # one cell

_BETWEEN = 4  # cells between two columns of tiles
_NARROWEST = 40
_WIDEST_BAR = 60  # cells of a bar of times


def to_terminal(document: Document, theme: Theme, columns: int) -> str:
    """Return the document as text of at most `columns` cells per line, with the colors and characters of `theme`."""
    room = max(_NARROWEST, columns)
    lines = wrapped_lines([(text, "title") for text, _ in pieces(document.title, theme)], room)
    for part in _split(document.subtitle):
        lines += wrapped_lines(pieces(part, theme, "label"), room)
    for block in document.blocks:
        inner = _block(block, theme, room)
        if inner:
            lines += [Line(), Line().add(clean(block.title), "accent"), *inner]
    return "".join(f"{line.render(theme, room)}\n" for line in lines)


def pieces(cell: Cell, theme: Theme, style: str = "") -> list[Piece]:
    """Return a cell as styled text in characters that the terminal has; `style` is that of ordinary parts."""
    return [
        (
            theme.spelled(clean(part)),
            "accent" if isinstance(part, Loud) else part.style if isinstance(part, Figure) else style,
        )
        for part in ((cell,) if isinstance(cell, str) else cell)
    ]


def _split(cell: Cell) -> list[Cell]:
    """Return the parts of a subtitle, which are separated by bars in its own text."""
    parts: list[tuple[str, ...]] = [()]
    for part in (cell,) if isinstance(cell, str) else cell:
        if type(part) is str and " | " in part:
            before, _, after = part.partition(" | ")
            parts[-1] += (before,)
            parts.append((after,))
        else:
            parts[-1] += (part,)
    return [*parts]


def _block(block: Block, theme: Theme, room: int) -> list[Line]:
    if not isinstance(block, TableBlock):
        return _DRAWN[type(block)](block, theme, room) if type(block) in _DRAWN else []  # a flame graph needs a page
    caption = wrapped_lines(pieces(block.caption, theme, "label"), room) if block.caption else []
    rows = [[pieces(cell, theme) for cell in row] for row in block.rows]
    return [*caption, *table_lines(block, rows, theme, room)]


def _sentences(block: Lines, theme: Theme, room: int) -> list[Line]:
    """Return sentences with a mark before each; a subject such as "GPU 4:" stands out."""
    lines: list[Line] = []
    mark = theme.glyph("•", "*")
    for sentence in block.lines:
        told = pieces(sentence, theme)
        subject, colon, rest = told[0][0].partition(": ")
        if colon and len(subject) < 40:
            told[:1] = [(subject + ":", "title"), (f" {rest}", told[0][1])]
        for at, line in enumerate(wrapped_lines(told, room - 2)):
            lines.append(Line().add(f"{mark} " if at == 0 else "  ", "label").extend(line))
    return lines


def _time_bars(block: TimeBars, theme: Theme, room: int) -> list[Line]:
    """Return a bar per GPU, with its parts below it."""
    lines: list[Line] = []
    lead = max(len(name) for name, _ in block.rows) + 2
    for name, budget in block.rows:
        lines.append(Line().add(name, "title", lead).extend(budget_bar(budget, theme, min(_WIDEST_BAR, room - lead))))
        lines += [Line().add(" " * lead).extend(line) for line in budget_legend(budget, room - lead)]
    return lines


def _tiles(block: Tiles, theme: Theme, room: int) -> list[Line]:
    """Return name, figure and remark in as many columns as fit, read downwards."""
    rows = [["".join(text for text, _ in pieces(cell, theme)) for cell in tile] for tile in block.tiles]
    name, value, note = column_widths(rows)
    whole = name + 2 + value + 2 + note
    count = max(1, min(len(rows), (room + _BETWEEN) // (whole + _BETWEEN)))
    height = -(-len(rows) // count)
    note = min(note, room - name - value - 4)
    lines = []
    for at in range(height):
        line = Line()
        for start in range(at, len(rows), height):
            line.add(" " * _BETWEEN if line.width else "").add(rows[start][0], "label", name).add("  ")
            line.add(rows[start][1], "title", value, right=True).add("  ").add(rows[start][2], "label", note)
        lines.append(line)
    return lines


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


_DRAWN: dict[type, Callable[[Any, Theme, int], list[Line]]] = {
    Tiles: _tiles, Lines: _sentences, TimeBars: _time_bars, Charts: timeline_lines
}  # fmt: skip


_SPACE = 2  # cells between columns
_BESIDE = 30  # cells in which a text can stand beside the numbers, wrapped
_BAR = 6
_ROWS = {"critical": "critical", "warn": "warn", "good": "good"}


def table_lines(block: TableBlock, rows: Sequence[Sequence[Told]], theme: Theme, room: int) -> list[Line]:
    """Return the table in at most `room` cells.

    Texts at the end of a row wrap in the room that is left, or stand on lines of their own below the row. Columns of numbers
    that do not fit make a second table with the same first column.
    """
    layout = _Layout(block, rows, theme)
    below = layout.give_up(room)
    lines: list[Line] = []
    for part in layout.parts(room):
        if lines:
            lines.append(Line())
        lines += _part(layout, part, theme, room, below if not lines else [])
    return lines


class _Layout:
    """Which columns stand side by side, and how wide each is."""

    def __init__(self, block: TableBlock, rows: Sequence[Sequence[Told]], theme: Theme) -> None:
        self.block = block
        self.rows = rows
        self.shown = [*range(len(block.header))]
        self.bar = _BAR
        self.headers: list[Sequence[str]] = []
        self.widths: list[int] = []
        self.measure()

    def measure(self) -> None:
        """Find the width of each column; a heading takes at most two lines."""
        self.headers, self.widths = [], []
        for at, title in enumerate(self.block.header):
            values, bar = self._values(at), self.bar + 1 if self.has_bar(at) else 0
            room = values + bar
            while len(words := wrap(title, room)) > 2:
                room += 1
            self.headers.append(words)
            self.widths.append(max(values, max(map(width, words)) - bar))

    def _values(self, at: int) -> int:
        return max((sum(width(text) for text, _ in row[at]) for row in self.rows), default=0)

    def has_bar(self, at: int) -> bool:
        """Tell whether a column's numbers have bars before them."""
        cells = (row[at] for row in self.block.rows)
        return self.bar > 0 and any(isinstance(cell, Figure) and cell.share is not None for cell in cells)

    def cells(self, at: int) -> int:
        """Return the cells of a column, its bar included."""
        return self.widths[at] + (self.bar + 1 if self.has_bar(at) else 0)

    def whole(self, shown: Sequence[int]) -> int:
        """Return the cells of these columns side by side."""
        return sum(self.cells(at) for at in shown) + _SPACE * (len(shown) - 1)

    def give_up(self, room: int) -> list[int]:
        """Narrow the table to `room` and return the columns of text that stand below the rows: its last text wraps, or moves below."""
        below: list[int] = []
        shown = [*self.shown]
        while self.whole(shown) > room and len(shown) > 2 and not self.block.numeric[shown[-1]]:
            left = room - self.whole(shown[:-1]) - _SPACE
            if left >= _BESIDE and not below:
                self.widths[shown[-1]] = left
                break
            below.insert(0, shown.pop())
        if self.whole(shown) <= room:
            self.shown = shown
            return below
        self._leave_out_bars(room)
        for at in self.shown:
            if not self.block.numeric[at]:
                self.widths[at] = min(self.widths[at], max(10, room - self.cells(self.shown[0]) - _SPACE))
        return []

    def _leave_out_bars(self, room: int) -> None:
        """Leave out the bars where the table then has fewer parts."""
        count = len(self._parts(room))
        self.bar = 0
        self.measure()
        if len(self._parts(room)) == count:
            self.bar = _BAR
            self.measure()

    def parts(self, room: int) -> list[list[int]]:
        """Return the columns of each part, all about equally wide; all but the first repeat the first column."""
        best = self._parts(room)
        least = max(map(self.cells, self.shown))
        return next((found for limit in range(least, room) if len(found := self._parts(limit)) == len(best)), best)

    def _parts(self, room: int) -> list[list[int]]:
        found = [[self.shown[0]]]
        for at in self.shown[1:]:
            if self.whole([*found[-1], at]) > room and len(found[-1]) > 1:
                found.append([self.shown[0]])
            found[-1].append(at)
        return found


def _part(layout: _Layout, shown: Sequence[int], theme: Theme, room: int, below: Sequence[int]) -> list[Line]:
    height = max(len(layout.headers[at]) for at in shown)
    lines = [_header(layout, shown, row, height) for row in range(height)]
    for number, row in enumerate(layout.rows):
        lines += _row(layout, shown, number, theme)
        told: Told = []  # texts that stand below the row, each after the heading of its column
        for at in below:
            if "".join(text for text, _ in row[at]) not in ("", "–", "-"):
                told += [(f" {layout.block.header[at].lower()}: ", "label"), *row[at]]
        if told:
            lines += [Line().add("    ").extend(line) for line in wrapped_lines(told, room - 4)]
    return lines


def _header(layout: _Layout, shown: Sequence[int], row: int, height: int) -> Line:
    """Return one line of the headings, which stand at the bottom of their lines."""
    line = Line()
    for at in shown:
        words = layout.headers[at]
        first = height - len(words)
        text = words[row - first] if row >= first else ""
        line.add(" " * _SPACE if at != shown[0] else "").add(text, "label", layout.cells(at), layout.block.numeric[at])
    return line


def _row(layout: _Layout, shown: Sequence[int], number: int, theme: Theme) -> list[Line]:
    """Return one row: more than one line where a text wraps."""
    block = layout.block
    loud = _ROWS.get(block.styles.get(number, ""), "")
    columns = []
    for at in shown:
        told = layout.rows[number][at]
        style = "title" if at == 0 else loud if at == len(block.header) - 1 else ""
        columns.append([*wrapped_lines([(text, own or style) for text, own in told], layout.widths[at])])
    height = max(map(len, columns))
    lines = []
    for line_number in range(height):
        line = Line()
        for at, wrapped in zip(shown, columns, strict=True):
            line.add(" " * _SPACE if at != shown[0] else "")
            if layout.has_bar(at):
                line.extend(_bar(block.rows[number][at], theme, layout.bar, line_number)).add(" ")
            text = wrapped[line_number] if line_number < len(wrapped) else Line()
            space = Line().to(layout.widths[at] - text.width)
            line.extend(space.extend(text) if block.numeric[at] else text.extend(space))
        lines.append(line)
    return lines


def _bar(cell: object, theme: Theme, cells: int, line_number: int) -> Line:
    """Return the bar of a figure; blank if there is none."""
    if line_number or not isinstance(cell, Figure) or cell.share is None:
        return Line().to(cells)
    return gauge(theme, cell.share, cells, cell.style)
