"""The last row: which keys do what, or what was just said, or the text being typed, or the line of time."""

from __future__ import annotations

from ....present.quantities import clock_text
from ....present.text import fit, width
from ..grid import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..area import Area
    from ..grid import Grid
    from ..state import State

_LONGEST_LINE = 60


def paint(grid: Grid, area: Area, state: State, hints: Sequence[tuple[str, str]]) -> None:
    """Draw the filter while it is typed, else the message, else the keys, whole ones only, behind the line of time."""
    if area.rows <= 0 or area.columns <= 0:
        return
    row, column, end = area.row, area.column, area.column + area.columns
    if state.dialog == "filter":
        _filter(grid, area, state)
        return
    if state.message:
        grid.put(row, column, fit(state.message, area.columns, state.theme.more), "warn")
        return
    if state.position is not None and state.position.total:
        column = _recording_line(grid, area, state, state.position.moment / state.position.total) + 3
    elif state.back > 0:
        column = _time_line(grid, area, state) + 3
    for key, word in hints:
        if column + width(key) + 1 + width(word) > end:
            break
        column = grid.put(row, column, key, "accent") + 1
        column = grid.put(row, column, word, "label") + 2


def _filter(grid: Grid, area: Area, state: State) -> None:
    """Draw the line being typed with a cursor at its end; of a long one the end is kept, which is where one types."""
    column = grid.put(area.row, area.column, "filter: ", "accent", area.columns)
    room = max(0, area.column + area.columns - column - 1)
    text = state.editing
    while width(text) > room:
        text = text[1:]
    column = grid.put(area.row, column, text, "", room)
    column = draw(grid, area.row, column, state.theme.glyph("█", "_"), "accent") + 2
    hint = "Enter apply  Esc cancel"
    if column + len(hint) <= area.column + area.columns and len(state.editing) < room // 2:
        draw(grid, area.row, area.column + area.columns - len(hint), hint, "label")


def _time_line(grid: Grid, area: Area, state: State) -> int:
    """Draw from the oldest sample kept to now, with a mark at the one on screen."""
    moments = state.history.moments()
    newest = state.live.time if state.live else moments[-1] if moments else state.now
    oldest = min(moments[0] if moments else newest, newest - state.back)
    share = (newest - state.back - oldest) / max(1e-9, newest - oldest)
    column = draw(grid, area.row, area.column, f"{clock_text(oldest)} ", "label")
    column = _rule(grid, area, column, state, share, max(6, min(_LONGEST_LINE, area.columns // 2) - 15))
    return draw(grid, area.row, column, " now", "label")


def _recording_line(grid: Grid, area: Area, state: State, share: float) -> int:
    """Draw the whole recording, with a mark at the sample on screen; the header says the times."""
    return _rule(grid, area, area.column, state, share, max(6, min(_LONGEST_LINE, area.columns // 4)))


def _rule(grid: Grid, area: Area, column: int, state: State, share: float, cells: int) -> int:
    rule, knob = state.theme.glyph("─", "-"), state.theme.glyph("●", "O")
    at = min(cells - 1, max(0, round((cells - 1) * share)))
    column = draw(grid, area.row, column, rule * at, "accent")
    column = draw(grid, area.row, column, knob, "accent")
    return draw(grid, area.row, column, rule * (cells - 1 - at), "border")
