"""The first row: which machine, and which moment when that is not now."""

from __future__ import annotations

import time

from ....present.text import clean, width
from ....present.words import short_name
from ....units import duration_text
from .gpus import stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..area import Area
    from ..grid import Grid
    from ..state import State


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the machine at the left and the time at the right; a moment that is not now is said aloud and never left out."""
    if area.rows <= 0 or area.columns <= 0:
        return
    end = area.column + area.columns
    loud, quiet = _moment(state)
    column = end
    if quiet and len(quiet) + (len(loud) + 3 if loud else 0) < area.columns:
        column = end - len(quiet)
        grid.put(area.row, column, quiet, "label")
    if loud:
        column = max(area.column, column - len(loud) - (3 if column < end else 2))
        grid.put(area.row, column, f" {loud} ", "loud", area.columns)
    _machine(grid, area, state, column - 1 - area.column)


def _machine(grid: Grid, area: Area, state: State, room: int) -> None:
    look = state.shown
    if look is None or room <= 0:
        return
    dot = state.theme.glyph(" · ", " | ")
    facts = [_gpus(state)]
    facts += [f"driver {clean(look.driver['version'])}"] if "version" in look.driver else []
    facts += [f"CUDA {clean(look.driver['cuda'])}"] if "cuda" in look.driver else []
    if state.readonly:
        facts.insert(0, "read only")
    column = grid.put(area.row, area.column, clean(look.host.name or "gpulse"), "title", room)
    for fact in facts:
        if column - area.column + width(dot + fact) <= room:
            column = grid.put(area.row, column, dot, "faint")
            column = grid.put(area.row, column, fact, "label")


def _gpus(state: State) -> str:
    gpus = state.shown.gpus if state.shown else ()
    names = {short_name(gpu) for gpu in gpus}
    if len(names) == 1:
        name = names.pop()
        return name if len(gpus) == 1 else f"{len(gpus)} {state.theme.glyph('×', 'x')} {name}"
    return f"{len(gpus)} GPUs" if gpus else "no GPU"


def _moment(state: State) -> tuple[str, str]:
    """Return what must be said aloud about the moment shown, and the clock."""
    look = state.shown
    clock = time.strftime("%H:%M:%S", time.localtime(look.time if look else state.now))
    replay = str(getattr(state, "replay", ""))
    words = [f"REPLAY {clean(replay)}"] if replay else []
    if state.paused:
        words.append("PAUSED")
    if state.back > 0:
        words.append(f"{_long(state.back)} ago")
    if not words and (old := stale(state)):
        words.append(f"NO NEW DATA: {old}")
    return (f"{'  '.join(words)}  {clock}", "") if words else ("", clock)


def _long(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return duration_text(seconds)
