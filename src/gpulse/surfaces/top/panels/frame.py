"""A dialog box: a frame in the middle of the screen."""

from __future__ import annotations

from ....present.text import fit, width
from ..area import Area

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....present.theme import Theme
    from ....screen.grid import Grid

_GLYPHS = ("╭╮╰╯─│", "++++-|")


def box(grid: Grid, area: Area, theme: Theme, title: str, rows: int, columns: int, foot: str = "") -> Area:
    """Draw a centered frame for `rows` by `columns` of content, and return its cleared inner area.

    It is never larger than the area; if there is no space for a frame, the whole area is returned.
    `title` is in the upper edge and `foot` in the lower one.
    """
    tall, wide, top, left = _placed(area, rows, columns)
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


def inside_of(area: Area, rows: int, columns: int) -> Area:
    """Return the inner area of the frame that `box` draws."""
    tall, wide, top, left = _placed(area, rows, columns)
    return Area(top, left, tall, wide) if tall < 3 or wide < 5 else Area(top + 1, left + 2, tall - 2, wide - 4)


def _placed(area: Area, rows: int, columns: int) -> tuple[int, int, int, int]:
    tall, wide = min(area.rows, rows + 2), min(area.columns, columns + 4)
    return tall, wide, area.row + (area.rows - tall) // 2, area.column + (area.columns - wide) // 2


def shown_from(choice: int, count: int, rows: int) -> int:
    """Return the first line to show so that the selected one is in the middle, or as close as possible."""
    return max(0, min(choice - rows // 2, count - rows))
