"""The sort menu: all columns to sort processes by, with the current one marked."""

from __future__ import annotations

from ..settings import COLUMNS, column_title
from .frame import choices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..area import Area
    from ..grid import Grid
    from ..state import State

_TITLE = "Sort by"


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the columns with the line `state.choice` highlighted."""
    choices(grid, area, state.theme, _TITLE, lines(state), state.choice)


def keys(state: State) -> tuple[str, ...]:
    """Return the column of each line."""
    return COLUMNS


def lines(state: State) -> list[tuple[str, str]]:
    """Return the label of every column, with the sort direction of the current one."""
    arrow = state.theme.glyph("▼", "v") if state.falling else state.theme.glyph("▲", "^")
    return [(column_title(column), arrow if column == state.sort else " ") for column in COLUMNS]
