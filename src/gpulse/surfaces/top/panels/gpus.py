"""The GPUs: a card for each where there is room, else a line; a GPU that does not respond says so."""

from __future__ import annotations

from ..gpu_plan import plan
from . import gpu_cards, gpu_lines
from .gpu_parts import stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw every GPU as large as the area allows; what is older than three intervals is pale and says its age."""
    if area.rows <= 0 or area.columns <= 0:
        return
    sample = state.shown
    if sample is None or not sample.gpus:
        words = "waiting for the first sample" if sample is None else "no GPU"
        grid.put(area.row, area.column, words + (state.theme.more if sample is None else ""), "label", area.columns)
        return
    places, old = plan(state, area), stale(state)
    if places.cards:
        gpu_cards.paint(grid, state, sample.gpus, places, old)
    else:
        gpu_lines.paint(grid, area, state, sample.gpus, places, old)
