"""The first row: which machine, and which moment when that is not now."""

from __future__ import annotations

from ....present.quantities import clock_text, elapsed_text, number_text
from ....present.text import clean, width
from ....present.words import short_name
from ....units import duration_text
from .gpu_parts import stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....screen.grid import Grid
    from ....sources.replay.source import Position
    from ..area import Area
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
    sample = state.shown
    if sample is None or room <= 0:
        return
    dot = state.theme.glyph(" · ", " | ")
    facts = [_gpus(state)]
    facts += [f"driver {clean(sample.driver['version'])}"] if "version" in sample.driver else []
    facts += [f"CUDA {clean(sample.driver['cuda'])}"] if "cuda" in sample.driver else []
    if state.readonly:
        facts.insert(0, "read only")
    column = grid.put(area.row, area.column, clean(sample.host.name or "gpulse"), "title", room)
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
    sample = state.shown
    clock = clock_text(sample.time if sample else state.now)
    words = _playing(state.position, state.theme.glyph("×", "x")) if state.position else []
    if state.paused:
        words.append("PAUSED")
    if state.back > 0:
        words.append(f"{duration_text(state.back)} ago")
    if not words and (old := stale(state)):
        words.append(f"NO NEW DATA: {old}")
    return (f"{'  '.join(words)}  {clock}", "") if words else ("", clock)


def _playing(position: Position, times: str) -> list[str]:
    """Return where a recording is, of how much, and how it goes."""
    total = "..." if position.total is None else elapsed_text(int(position.total + 1e-6))
    speed = "max" if position.speed is None else f"{times}{number_text(position.speed)}"
    # the tenths matter to those who step; while it plays they would only make the line jump
    moment = position.moment if position.paused else int(position.moment + 1e-6)
    words = [f"REPLAY {elapsed_text(moment)}/{total} {speed}"]
    if position.ended:
        return [*words, "end of the recording"]
    return [*words, "PAUSED"] if position.paused else words
