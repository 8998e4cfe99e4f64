"""A dialog box, and a list in it that keeps the selected line visible."""

from __future__ import annotations

from ....present.text import fit, width
from ..area import Area

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....present.theme import Theme
    from ..grid import Grid

_GLYPHS = ("╭╮╰╯─│", "++++-|")


def box(grid: Grid, area: Area, theme: Theme, title: str, rows: int, columns: int, foot: str = "") -> Area:
    """Draw a centered frame for `rows` by `columns` of content, and return its cleared inner area.

    It is never larger than the area; if there is no space for a frame, the whole area is returned.
    `title` is in the upper edge and `foot` in the lower one.
    """
    tall, wide = min(area.rows, rows + 2), min(area.columns, columns + 4)
    top, left = area.row + (area.rows - tall) // 2, area.column + (area.columns - wide) // 2
    grid.fill(top, left, tall, wide)
    if tall < 3 or wide < 5:
        return Area(top, left, tall, wide)
    upper_left, upper_right, lower_left, lower_right, across, down = tuple(theme.glyph(*_GLYPHS))
    grid.put(top, left, upper_left + across * (wide - 2) + upper_right, "border")
    for row in range(top + 1, top + tall - 1):
        grid.put(row, left, down, "border")
        grid.put(row, left + wide - 1, down, "border")
    grid.put(top + tall - 1, left, lower_left + across * (wide - 2) + lower_right, "border")
    if wide >= 7:  # an edge cell, a corner and a space on each side, and some text
        if title:
            grid.put(top, left + 2, f" {fit(theme.spelled(title), wide - 6, theme.more)} ", "title")
        if foot and width(foot) <= wide - 6:
            grid.put(top + tall - 1, left + wide - 4 - width(foot), f" {foot} ", "label")
    return Area(top + 1, left + 2, tall - 2, wide - 4)


def shown_from(choice: int, count: int, rows: int) -> int:
    """Return the first line to show so that the selected one is in the middle, or as close as possible."""
    return max(0, min(choice - rows // 2, count - rows))


def choices(grid: Grid, area: Area, theme: Theme, title: str, lines: Sequence[tuple[str, str]], choice: int) -> None:
    """Draw a list in a box: labels on the left, values on the right, the selected line highlighted.

    The list scrolls with the selection, which may be outside the list. A label that is too long keeps its end, where
    similar labels differ.
    """
    count = len(lines)
    choice = max(0, min(choice, count - 1))
    columns = max([width(title) + 2, *(width(label) + width(value) + 2 for label, value in lines)])
    foot = f"{choice + 1}/{count}" if count > area.rows - 2 else ""
    inside = box(grid, area, theme, title, count, columns, foot)
    first = shown_from(choice, count, inside.rows)
    for row, (label, value) in enumerate(lines[first : first + inside.rows]):
        at, chosen = inside.row + row, first + row == choice
        value = fit(theme.spelled(value), max(0, inside.columns - 6), theme.more)
        room = inside.columns - width(value) - 1
        grid.put(at, inside.column, _ending(theme.spelled(label), room, theme.more), "calm", max(0, room))
        grid.put(at, inside.column + inside.columns - width(value), value, "accent")
        if chosen:
            grid.restyle(at, inside.column, inside.columns, "selected")


def _ending(text: str, cells: int, more: str) -> str:
    """Return text shortened to at most `cells` by removing its beginning."""
    if width(text) <= cells:
        return text
    while text and width(text) + width(more) > cells:
        text = text[1:]
    return more + text
