"""A document laid out for a terminal: aligned tables with bars, wrapped sentences and timelines as wide as the screen."""

from __future__ import annotations

from ...present.budget import budget_bar, budget_legend
from ...present.line import Line
from ...present.text import clean, column_widths
from ...present.wrapping import wrapped_lines
from .document import Charts, Figure, Lines, Loud, TableBlock, Tiles, TimeBars
from .terminal_table import table_lines
from .terminal_timeline import timeline_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...present.theme import Theme
    from ...present.wrapping import Piece
    from .document import Block, Cell, Document

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
    if isinstance(block, Tiles):
        return _tiles(block, theme, room)
    if isinstance(block, Lines):
        return _sentences(block.lines, theme, room)
    if isinstance(block, TimeBars):
        return _time_bars(block, theme, room)
    if isinstance(block, Charts):
        return timeline_lines(block, theme, room)
    if not isinstance(block, TableBlock):
        return []  # a flame graph needs a page
    caption = wrapped_lines(pieces(block.caption, theme, "label"), room) if block.caption else []
    rows = [[pieces(cell, theme) for cell in row] for row in block.rows]
    return [*caption, *table_lines(block, rows, theme, room)]


def _sentences(sentences: Sequence[Cell], theme: Theme, room: int) -> list[Line]:
    """Return sentences with a mark before each; a subject such as "GPU 4:" stands out."""
    lines: list[Line] = []
    mark = theme.glyph("•", "*")
    for sentence in sentences:
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
