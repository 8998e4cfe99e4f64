"""The painter: a pure function from a state to a screen."""

from __future__ import annotations

from ...present.text import ascii_text
from ...screen.grid import WIDE_REST, Grid, mend
from .actions import help_lines, hints
from .layout import Area, arrange
from .panels import charts, gpus, host, processes, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .state import State

    Facts = Callable[[int], dict[str, str]]

_PANELS = {
    "header": rows.paint_header, "gpus": gpus.paint, "serving": rows.paint_serving, "charts": charts.paint,
    "host": host.paint, "processes": processes.paint, "problems": rows.paint_problems, "events": rows.paint_events,
}  # fmt: skip


def paint(state: State, facts: Facts = lambda pid: {}) -> Grid:
    """Return the screen of a state; `facts` returns more about a process, for the details."""
    grid = Grid(state.columns, state.rows)
    areas = arrange(state)
    if state.dialog in ("gpu", "host"):
        header, footer = areas["header"], areas["footer"]
        rows.paint_header(grid, header, state)
        _view(grid, Area(header.end, 0, footer.row - header.end, state.columns), state)
    else:
        for name, panel in _PANELS.items():
            panel(grid, areas[name], state)
    rows.paint_footer(grid, areas["footer"], state, hints(state.player is not None))
    if state.dialog and state.dialog != "filter":
        _dialog(grid, Area(0, 0, state.rows, state.columns), state, facts)
    if not state.theme.unicode:
        _spell(grid)
    mend(grid)
    return grid


def _view(grid: Grid, area: Area, state: State) -> None:
    """Draw a full-screen view; they are loaded when first used."""
    from .panels import views

    (views.paint_gpu if state.dialog == "gpu" else views.paint_host)(grid, area, state)


def _dialog(grid: Grid, area: Area, state: State, facts: Facts) -> None:
    """Draw the open dialog; they are loaded when first used."""
    if state.dialog == "details":
        from .panels import details

        details.paint(grid, area, state, facts)
    elif state.dialog in ("help", "why"):
        from .panels import dialogs

        if state.dialog == "help":
            dialogs.paint_help(grid, area, state, help_lines(state.player is not None))
        else:
            dialogs.paint_why(grid, area, state)
    elif state.dialog in ("settings", "sort", "signal"):
        from .panels.menus import menu_of

        menu_of(state).paint(grid, area, state.theme)


def _spell(grid: Grid) -> None:
    """Replace characters that an ASCII terminal cannot show, cell by cell, so that nothing moves."""
    for chars in grid.chars:
        for at, char in enumerate(chars):
            if char == WIDE_REST:
                chars[at] = "?"
            elif not char.isascii():
                chars[at] = ascii_text(char)[:1] or " "
