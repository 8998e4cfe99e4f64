"""A document: what a report says, in blocks, before it is HTML, Markdown or text for a terminal; and the Markdown."""

from __future__ import annotations

from ...present.cells import throttle_words
from ...present.quantities import DASH, number_text
from ...present.text import Untrusted, clean, column_widths, pad, width
from ...present.verdicts import budget_letters
from ...units import duration_text
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ...model.stacks import TimedStack
    from ...model.verdict import Budget
    from .charts import ReportChart, Strip
    from .run import Run

    Cell: TypeAlias = "str | tuple[str, ...]"
    Block: TypeAlias = "Tiles | Lines | TimeBars | TableBlock | Flame | Charts"
    from ...analysis.summary import GpuSummary
    from ...sinks.base import Mark
    from .charts import TimelineSeries


class Loud(str):
    """Text that matters more than its neighbours."""

    __slots__ = ()


class Figure(str):
    """A number as text. `share` from 0 to 1 can be drawn as a bar; `style` is the style of the bar, or of the text without one."""

    __slots__ = ("share", "style")

    share: float | None
    style: str

    def __new__(cls, text: str, share: float | None = None, style: str = "") -> Figure:
        """Make one of a finished text."""
        made = super().__new__(cls, text)
        made.share = share
        made.style = style
        return made


class Tiles(Value):
    """The few figures that everybody wants, each with a name and a remark."""

    title: str
    tiles: Sequence[tuple[str, Cell, Cell]]


class Lines(Value):
    """Sentences, one below the other."""

    title: str
    lines: Sequence[Cell]


class TimeBars(Value):
    """Where the time of each GPU went, one bar per row: name and budget."""

    title: str
    rows: Sequence[tuple[str, Budget]]


class TableBlock:
    """Rows under a header: the first `words` columns and those in `wide` hold words, the others numbers.

    `styles` colors rows, by number: critical, warn, good or changed. A column without any value is left out.
    """

    def __init__(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        caption: str = "",
        words: int = 1,
        wide: Sequence[str] = (),
        styles: dict[int, str] | None = None,
    ) -> None:
        kept = [at for at in range(len(header)) if any(row[at] not in ("", DASH) for row in rows)]
        self.title = title
        self.caption = caption
        self.header = [header[at] for at in kept]
        self.rows = [[row[at] for at in kept] for row in rows]
        self.numeric = [at >= words and header[at] not in wide for at in kept]
        self.styles = styles or {}


class Flame(Value):
    """A flame graph of stacks, weighted by the GPU time that was lost; pages only."""

    title: str
    stacks: Sequence[TimedStack]


class Charts(Value):
    """Charts over time, of one run or of two laid over each other, all under one cursor."""

    title: str
    runs: Sequence[Run]
    charts: Sequence[ReportChart]
    strips: Sequence[Strip]


class Document(Value):
    """A title, what it is about, and blocks."""

    title: Cell
    subtitle: Cell
    blocks: Sequence[Block]


def with_content(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks that have something to say."""
    return [block for block in blocks if (block.lines if isinstance(block, Lines) else getattr(block, "rows", True))]


def plain(cell: Cell) -> str:
    """Return a cell as one text."""
    return cell if isinstance(cell, str) else "".join(cell)


def throttled_text(gpu: GpuSummary) -> Cell:
    """Return how long and why a GPU was throttled."""
    if gpu.throttled_seconds < 1:
        return DASH
    return (f"{duration_text(gpu.throttled_seconds)} (", *throttle_words(gpu.throttled), ")")


def mark_text(mark: Mark) -> Cell:
    """Return what a program noted."""
    if mark.value is None:
        return ("mark ", Untrusted(mark.name))
    value = Untrusted(mark.value) if isinstance(mark.value, str) else number_text(mark.value)
    return ("mark ", Untrusted(mark.name), ": ", value)


_BLOCKS = "▁▂▃▄▅▆▇█"
_SPARK = 60  # characters of a row


def to_markdown(document: Document) -> str:
    """Return Markdown whose tables are aligned, so that it also reads well as it is."""
    parts = [f"# {_inline(document.title)}", _inline(document.subtitle)]
    for block in document.blocks:
        if isinstance(block, Tiles):
            rows = [[name, value, remark] for name, value, remark in block.tiles]
            parts += [f"## {block.title}", _table(["", "", ""], rows, [False, True, False])]
        elif isinstance(block, Lines):
            parts += [f"## {_inline(block.title)}", "\n".join(f"- {_inline(line)}" for line in block.lines)]
        elif isinstance(block, TimeBars):
            bars = ((name, *budget_letters(budget)) for name, budget in block.rows)
            parts += [f"## {block.title}", "\n".join(f"- {name}: `{bar}` {told}" for name, bar, told in bars)]
        elif isinstance(block, TableBlock):
            parts += [f"## {block.title}"] + ([block.caption] if block.caption else [])
            parts.append(_table(block.header, block.rows, block.numeric))
        elif isinstance(block, Charts) and (sparks := _sparks(block)):
            parts += [f"## {block.title}", sparks]
    return "\n\n".join(parts) + "\n"


def _inline(cell: Cell) -> str:
    return "".join(_part(part) for part in ((cell,) if isinstance(cell, str) else cell))


def _part(text: str) -> str:
    """Return a part of a sentence; what others chose goes between backticks, where nothing of it is obeyed."""
    if isinstance(text, Untrusted):
        shown = clean(text).replace("`", "'").replace("|", "¦").strip()
        return f"`{shown}`" if shown else ""
    return f"**{text}**" if isinstance(text, Loud) else text


def _table(header: list[str], rows: list[list[Cell]], numeric: list[bool]) -> str:
    texts = [list(header), *([_inline(cell) for cell in row] for row in rows)]
    widths = column_widths(texts, 3)
    rule = [f"{'-' * (wide - 1)}:" if right else "-" * wide for wide, right in zip(widths, numeric, strict=True)]
    lines = [texts[0], rule, *texts[1:]]
    return "\n".join(
        "| "
        + " | ".join(pad(text, wide, right) for text, wide, right in zip(line, widths, numeric, strict=True))
        + " |"
        for line in lines
    )


def _sparks(block: Charts) -> str:
    """Return the busiest charts as rows of blocks, one character for a stretch of time."""
    rows: list[tuple[str, str]] = []
    for chart in block.charts[:2] if not block.strips else [block.charts[block.strips[0].line[0]]]:
        rows += [
            (
                clean(f"{chart.title}, {line.name}").replace("`", "'"),
                _spark(line.trace, len(block.runs[line.run].timeline.at), chart.high),
            )
            for line in chart.lines
        ]
    wide = max((width(name) for name, _ in rows), default=0)
    body = "\n".join(f"{pad(name, wide)}  {spark}" for name, spark in rows)
    return f"```\n{body}\n```" if body else ""


def _spark(trace: TimelineSeries, length: int, high: float) -> str:
    trace.reach(length)
    cells = min(_SPARK, length)
    text = ""
    for cell in range(cells):
        points = [at for at in range(cell * length // cells, (cell + 1) * length // cells) if trace.counts[at]]
        if not points:
            text += " "
            continue
        mean = sum(trace.sums[at] for at in points) / sum(trace.counts[at] for at in points)
        text += _BLOCKS[min(len(_BLOCKS) - 1, max(0, int(mean / max(high, 1e-9) * len(_BLOCKS))))]
    return text
