"""The painter: a pure function from a state to a screen."""

from __future__ import annotations

from ...present.concerns import headline
from ...present.events import event_style, event_text
from ...present.text import ascii_text, fit, width
from ...screen.grid import WIDE_REST, Grid, mend
from ...units import duration_text
from .actions import help_lines, hints
from .area import Area
from .layout import arrange
from .panels import charts, footer, gpus, header, host, processes, serving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .state import State

    Facts = Callable[[int], dict[str, str]]

_PANELS = {"header": header, "gpus": gpus, "serving": serving, "charts": charts, "host": host, "processes": processes}


def paint(state: State, facts: Facts = lambda pid: {}) -> Grid:
    """Return the screen of a state; `facts` returns more about a process, for the details."""
    grid = Grid(state.columns, state.rows)
    areas = arrange(state)
    if state.dialog in ("gpu", "host"):
        header.paint(grid, areas["header"], state)
        _view(grid, Area(areas["header"].end, 0, areas["footer"].row - areas["header"].end, state.columns), state)
    else:
        for name, panel in _PANELS.items():
            panel.paint(grid, areas[name], state)
        if areas["problems"].rows:
            grid.line(areas["problems"].row, 0, headline(state.concerns, state.columns, "(y: why)"))
        _events(grid, areas["events"], state)
    if "footer" in areas:
        footer.paint(grid, areas["footer"], state, hints(state.player is not None))
    if state.dialog and state.dialog != "filter":
        _dialog(grid, Area(0, 0, state.rows, state.columns), state, facts)
    if not state.theme.unicode:
        _spell(grid)
    mend(grid)
    return grid


def _view(grid: Grid, area: Area, state: State) -> None:
    """Draw a full-screen view; each is loaded when first used."""
    if state.dialog == "gpu":
        from .panels import gpu_view

        gpu_view.paint(grid, area, state)
    else:
        from .panels import host_view

        host_view.paint(grid, area, state)


def _events(grid: Grid, area: Area, state: State) -> None:
    """Draw the events up to the moment on screen, newest first, with their age then."""
    if area.rows <= 0:
        return
    column = area.column
    past = state.back > 0 and state.shown is not None
    now = state.shown.time if past and state.shown is not None else state.now
    for event in state.events:
        if past and event.time > now:
            continue
        age, text = f"{duration_text(now - event.time)} ago ", event_text(event)
        if column > area.column and column + len(age) + width(text) > area.columns:
            break  # an older event is left out rather than cut
        column = grid.put(area.row, column, age, "faint", area.columns - column)
        text = fit(text, area.columns - column, state.theme.more)
        column = grid.put(area.row, column, text, event_style(event)) + 3


def _dialog(grid: Grid, area: Area, state: State, facts: Facts) -> None:
    """Draw the open dialog; each is loaded when first used."""
    if state.dialog == "help":
        from .legend import LEGEND
        from .panels import help as help_panel

        help_panel.paint(grid, area, state, help_lines(state.player is not None), LEGEND)
    elif state.dialog == "settings":
        from .panels import settings

        settings.paint(grid, area, state)
    elif state.dialog == "sort":
        from .panels import sort_menu

        sort_menu.paint(grid, area, state)
    elif state.dialog == "signal":
        from .panels import signal_menu

        signal_menu.paint(grid, area, state)
    elif state.dialog == "why":
        from .panels import why

        why.paint(grid, area, state)
    elif state.dialog == "details":
        from .panels import details

        details.paint(grid, area, state, facts)


def _spell(grid: Grid) -> None:
    """Replace characters that an ASCII terminal cannot show, cell by cell, so that nothing moves."""
    for chars in grid.chars:
        for at, char in enumerate(chars):
            if char == WIDE_REST:
                chars[at] = "?"
            elif not char.isascii():
                chars[at] = ascii_text(char)[:1] or " "
