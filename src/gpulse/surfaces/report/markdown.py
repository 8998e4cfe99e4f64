"""A document as Markdown: for a terminal, an issue or a message."""

from __future__ import annotations

from ...present.budget import budget_letters
from ...present.text import Untrusted, clean, column_widths, pad, width
from .document import Charts, Lines, Loud, TableBlock, Tiles, TimeBars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .document import Cell, Document
    from .timeline import TimelineSeries

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
