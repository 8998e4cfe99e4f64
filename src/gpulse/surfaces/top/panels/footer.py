"""The bottom line: keys and their actions, a message, the filter being typed, or the timeline."""

from __future__ import annotations

from ....present.quantities import clock_text
from ....present.text import clean, fit, width
from ....screen.grid import Grid, draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..area import Area
    from ..state import State

_LONGEST_LINE = 60
_LONGEST_FILTER = 28


def paint(grid: Grid, area: Area, state: State, hints: Sequence[tuple[str, str]]) -> None:
    """Draw the filter while it is typed, else the message, else the keys that fit, behind the timeline if there is one."""
    if area.rows <= 0 or area.columns <= 0:
        return
    if state.dialog == "filter":
        _filter(grid, area, state)
        return
    if state.message:
        grid.put(area.row, area.column, fit(state.message, area.columns, state.theme.more), "warn")
        return
    column = _timeline(grid, area, state)
    for start, key, word, style in _placed(area, state, hints, column):
        grid.put(area.row, grid.put(area.row, start, key, "accent") + 1, word, style)


def key_at(area: Area, state: State, hints: Sequence[tuple[str, str]], column: int) -> str:
    """Return the key whose hint is in a column of the screen, or nothing."""
    if state.dialog == "filter" or state.message:
        return ""
    start = _timeline(Grid(area.column + area.columns, area.end), area, state)
    for at, key, word, _ in _placed(area, state, hints, start):
        if at <= column < at + width(key) + 1 + width(word):
            return key
    return ""


def _timeline(grid: Grid, area: Area, state: State) -> int:
    """Draw the timeline if the screen is not live, and return the column where the keys begin."""
    if state.position is not None and state.position.total:
        return _recording_line(grid, area, state, state.position.moment / state.position.total) + 3
    return _time_line(grid, area, state) + 3 if state.back > 0 else area.column


def _placed(area: Area, state: State, hints: Sequence[tuple[str, str]], column: int) -> list[tuple[int, str, str, str]]:
    """Return the hints that fit whole: column, key, label and style. The last one, quit, always has its place."""
    found: list[tuple[int, str, str, str]] = []
    end = area.column + area.columns
    for at, (key, label) in enumerate(hints):
        word, style = (_filter_label(state), "warn") if label == "filter" and state.filter else (label, "label")
        last = at == len(hints) - 1
        rest = 0 if last else width(hints[-1][0]) + 1 + width(hints[-1][1]) + 2
        cells = width(key) + 1 + width(word)
        if column + cells + rest <= end or (last and column + cells <= end):
            found.append((column, key, word, style))
            column += cells + 2
    return found


def _filter_label(state: State) -> str:
    """Return the active filter, instead of the word: it hides processes, so it must be seen."""
    return fit(state.theme.spelled(clean(state.filter)), _LONGEST_FILTER, state.theme.more)


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
