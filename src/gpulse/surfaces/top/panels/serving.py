"""The model servers below the GPUs, one line each, led by the numbers of their GPUs."""

from __future__ import annotations

from ....present.serving import place_text, serving_pieces
from ....present.text import width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw as many servers as there are rows; of each what fits, the most important first."""
    sample = state.shown
    if area.rows <= 0 or sample is None:
        return
    places = [place_text(server, sample.gpus) for server in sample.serving]
    widest = max((width(place) for place in places), default=0)
    dot = state.theme.glyph(" · ", " | ")
    for row, (server, place) in enumerate(zip(sample.serving[: area.rows], places, strict=False), area.row):
        grid.put(row, area.column, place, "accent", area.columns)
        column = area.column + widest + 1
        for at, (text, style) in enumerate(serving_pieces(server)):
            if at:
                if column + len(dot) + width(text) > area.column + area.columns:
                    break
                column = grid.put(row, column, dot, "label")
            column = grid.put(row, column, text, style, area.column + area.columns - column)
