"""A document: what a report says, in blocks, before it is HTML, Markdown or text for a terminal."""

from __future__ import annotations

from ...present.quantities import DASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ...model.budget import Budget
    from ...model.stacks import TimedStack
    from .charts import ReportChart, Strip
    from .run import Run

    Cell: TypeAlias = "str | tuple[str, ...]"
    Block: TypeAlias = "Tiles | Lines | TimeBars | TableBlock | Flame | Charts"


class Loud(str):
    """Text that matters more than its neighbours."""

    __slots__ = ()


class Figure(str):
    """A number in words. `share` from 0 to 1 can be drawn as a bar; `style` is the style of the bar, or of the text without one."""

    __slots__ = ("share", "style")

    share: float | None
    style: str

    def __new__(cls, text: str, share: float | None = None, style: str = "") -> Figure:
        """Make one of a finished text."""
        made = super().__new__(cls, text)
        made.share = share
        made.style = style
        return made


class Tiles:
    """The few figures that everybody wants, each with a name and a remark."""

    def __init__(self, title: str, tiles: Sequence[tuple[str, Cell, Cell]]) -> None:
        self.title = title
        self.tiles = tiles


class Lines:
    """Sentences, one below the other."""

    def __init__(self, title: str, lines: Sequence[Cell]) -> None:
        self.title = title
        self.lines = lines


class TimeBars:
    """Where the time of each GPU went, one bar per row: name and budget."""

    def __init__(self, title: str, rows: Sequence[tuple[str, Budget]]) -> None:
        self.title = title
        self.rows = rows


class TableBlock:
    """Rows under a header: the first `words` columns and those in `wide` hold words, the others numbers.

    `styles` colours rows, by number: critical, warn, good or changed. A column without any value is left out.
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


class Flame:
    """A flame graph of stacks, weighted by the GPU time that was lost; pages only."""

    def __init__(self, title: str, stacks: Sequence[TimedStack]) -> None:
        self.title = title
        self.stacks = stacks


class Charts:
    """Charts over time, of one run or of two laid over each other, all under one cursor."""

    def __init__(self, title: str, runs: Sequence[Run], charts: Sequence[ReportChart], strips: Sequence[Strip]) -> None:
        self.title = title
        self.runs = runs
        self.charts = charts
        self.strips = strips


class Document:
    """A title, what it is about, and blocks."""

    def __init__(self, title: Cell, subtitle: Cell, blocks: Sequence[Block]) -> None:
        self.title = title
        self.subtitle = subtitle
        self.blocks = blocks


def plain(cell: Cell) -> str:
    """Return a cell as one text."""
    return cell if isinstance(cell, str) else "".join(cell)
