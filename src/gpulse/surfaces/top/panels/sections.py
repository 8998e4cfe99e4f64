"""Titled sections of lines, set in one to three columns and scrolled together: the body of a full-screen view."""

from __future__ import annotations

from ....present.line import Line
from ..layout import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from ....present.theme import Theme
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State

    Section: TypeAlias = "Callable[[int], list[Line]]"  # the lines for a width; none if there is nothing to show

_NARROWEST = 58  # columns of a section beside others


def across(columns: int) -> int:
    """Return how many columns of sections fit."""
    return max(1, min(3, columns // _NARROWEST))


def laid(
    columns: int, sections: Mapping[str, Section], orders: Mapping[int, Sequence[Sequence[str]]]
) -> list[list[Line]]:
    """Return the lines of each column; `orders` says, by number of columns, which sections are in which."""
    count = across(columns)
    room = (columns - 2 * (count - 1)) // count
    found = []
    for names in orders[count]:
        lines: list[Line] = []
        for name in names:
            part = sections[name](room)
            if part:
                lines += [*([Line()] if lines else []), *part]
        found.append(lines)
    return found


def paint_columns(grid: Grid, area: Area, state: State, columns: list[list[Line]]) -> None:
    """Draw the columns from the line `state.choice` on, which is moved back if it is beyond the end; the last row counts the hidden."""
    longest = max((len(lines) for lines in columns), default=0)
    rows = area.rows if longest <= area.rows else area.rows - 1
    state.choice = max(0, min(state.choice, longest - rows))
    for place, lines in zip(split(area, len(columns)), columns, strict=True):
        for row, line in enumerate(lines[state.choice : state.choice + rows]):
            grid.line(area.row + row, place.column, line, place.columns)
    if longest > rows:
        hidden = hidden_text(state.theme, state.choice, longest - state.choice - rows)
        grid.put(area.end - 1, area.column, f"{hidden} lines", "label", area.columns)


def hidden_text(theme: Theme, above: int, below: int) -> str:
    """Return how many lines are above and below what is visible: ↑3 ↓40 more."""
    marks = ((theme.glyph("↑", "^"), above), (theme.glyph("↓", "v"), below))
    return " ".join([*(f"{mark}{count}" for mark, count in marks if count > 0), "more"])


def heading(text: str, columns: int, state: State, note: str = "") -> Line:
    """Return the title of a section: a text, a rule, and a note at its end."""
    line = Line().add(text, "title").add(" ")
    tail = f" {note}" if note else ""
    rule = max(0, columns - line.width - len(tail))
    return line.add(state.theme.glyph("─", "-") * rule, "border").add(tail, "label")
