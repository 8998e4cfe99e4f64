"""The sort menu: all columns to sort processes by, with the current one marked."""

from __future__ import annotations

from ....model.catalog import PROCESS_METRICS
from ..settings import COLUMNS, column_title
from .menu import Menu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State

_TITLE = "Sort by"


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the columns with the line `state.choice` highlighted."""
    menu(state).paint(grid, area, state.theme)


def menu(state: State) -> Menu:
    """Return the menu; its lines are those of COLUMNS."""
    column = COLUMNS[max(0, min(state.choice, len(COLUMNS) - 1))]
    hint = "The GPU or MIG instance." if column == "gpu" else PROCESS_METRICS[column].help
    return Menu(_TITLE, lines(state), state.choice, hint=hint)


def keys(state: State) -> tuple[str, ...]:
    """Return the column of each line."""
    return COLUMNS


def lines(state: State) -> list[tuple[str, str]]:
    """Return the label of every column, with the sort direction of the current one."""
    arrow = state.theme.glyph("▼", "v") if state.falling else state.theme.glyph("▲", "^")
    return [(column_title(column), arrow if column == state.sort else " ") for column in COLUMNS]
