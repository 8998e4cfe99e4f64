"""A menu: a list in a box, with headings, a hint for the selected line, and lines to click on."""

from __future__ import annotations

from ....present.text import fit, width
from ..area import Area
from .frame import box, inside_of, shown_from
from .help import wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....present.theme import Theme
    from ....screen.grid import Grid

_NARROW = 24  # columns below which labels need the place of the mark
_HINT, _HINTED = 2, 64  # rows and columns of a hint: the longest help of a metric fits


class Menu:
    """Labels on the left, values on the right, the line `choice` highlighted. The list scrolls with the choice.

    `above` are lines of text over the list, `headings` are drawn before the lines with these numbers, and `hint` explains the
    selected line below the list. What does not fit on a small screen is left out: first the hint, then the lines above.
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[tuple[str, str]],
        choice: int,
        *,
        above: Sequence[tuple[str, str]] = (),
        headings: Mapping[int, str] | None = None,
        hint: str = "",
    ) -> None:
        self.title = title
        self.lines = lines
        self.choice = max(0, min(choice, len(lines) - 1))
        self.above = above
        self.hint = hint
        headings = headings or {}
        self._rows: list[int | str] = []  # the number of a line, or a heading
        for at in range(len(lines)):
            self._rows += [headings[at], at] if at in headings else [at]

    def paint(self, grid: Grid, area: Area, theme: Theme) -> None:
        """Draw the menu in the middle of an area."""
        above, room, hinted = self._shares(area)
        foot = f"{self.choice + 1}/{len(self.lines)}" if room < len(self._rows) else ""
        inside = box(grid, area, theme, self.title, self._height(above, hinted), self._width(), foot)
        for at in range(above):
            text, style = self.above[at]
            grid.put(inside.row + at, inside.column, fit(theme.spelled(text), inside.columns, theme.more), style)
        top = inside.row + above
        for at, row in enumerate(self._seen(room)[: inside.rows - above]):
            self._line(grid, Area(top + at, inside.column, 1, inside.columns), theme, row)
        if hinted and inside.rows >= above + room + hinted:
            first, *more = wrapped(theme.spelled(self.hint), inside.columns)
            for at, text in enumerate((first, " ".join(more))):
                text = fit(text, inside.columns, theme.more)
                grid.put(inside.row + inside.rows - hinted + at, inside.column, text, "label")

    def line_at(self, area: Area, row: int, column: int) -> int | None:
        """Return the number of the line in a cell of the screen; None for a heading, a hint or the edge, -1 outside the box."""
        above, room, hinted = self._shares(area)
        inside = inside_of(area, self._height(above, hinted), self._width())
        frame = Area(inside.row - 1, inside.column - 2, inside.rows + 2, inside.columns + 4)
        if not frame.holds(row, column):
            return -1
        at = row - inside.row - above
        seen = self._seen(room)
        if not 0 <= at < len(seen) or isinstance(found := seen[at], str):
            return None
        return found

    def _shares(self, area: Area) -> tuple[int, int, int]:
        """Return the number of rows above the list, of the list, and of the hint."""
        rows = max(1, area.rows - 2)
        above = min(len(self.above), max(0, rows - min(3, len(self._rows))))
        hinted = _HINT if self.hint and rows - above >= min(8, len(self._rows) + _HINT) else 0
        return above, max(1, min(len(self._rows), rows - above - hinted)), hinted

    def _height(self, above: int, hinted: int) -> int:
        return above + len(self._rows) + hinted

    def _width(self) -> int:
        texts = [
            f" {self.title} ",
            *(text for text, _ in self.above),
            *(row for row in self._rows if isinstance(row, str)),
        ]
        pairs = [width(label) + width(value) + 4 for label, value in self.lines]
        return max(_HINTED if self.hint else 0, *pairs, *map(width, texts))  # the same for every hint

    def _seen(self, room: int) -> list[int | str]:
        at = self._rows.index(self.choice) if self.lines else 0
        first = shown_from(at, len(self._rows), room)
        return self._rows[first : first + room]

    def _line(self, grid: Grid, place: Area, theme: Theme, row: int | str) -> None:
        if isinstance(row, str):
            grid.put(place.row, place.column, fit(theme.spelled(row), place.columns, theme.more), "title")
            return
        label, value = self.lines[row]
        chosen = row == self.choice
        mark = theme.glyph("▸ ", "> ") if chosen else "  "  # visible without colors, too
        mark = mark if place.columns >= _NARROW else ""
        value = fit(theme.spelled(value), max(0, place.columns - 6), theme.more)
        room = place.columns - width(value) - len(mark) - 1
        grid.put(place.row, place.column, mark + _ending(theme.spelled(label), room, theme.more), "calm", place.columns)
        grid.put(place.row, place.column + place.columns - width(value), value, "accent")
        if chosen:
            grid.restyle(place.row, place.column, place.columns, "selected")


def _ending(text: str, cells: int, more: str) -> str:
    """Return text shortened to at most `cells` by removing its beginning, as similar labels differ at the end."""
    if width(text) <= cells:
        return text
    while text and width(text) + width(more) > cells:
        text = text[1:]
    return (more + text)[: max(0, cells)]
