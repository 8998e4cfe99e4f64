"""What limits each GPU, with the numbers that say so and what to try: the answer of `gpulse why` over the last minute."""

from __future__ import annotations

from ....present.explanation import explained
from ....present.line import Line
from .frame import box

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the explanation in a box; `state.choice` is the first line seen, moved back where it is beyond the end."""
    shown = lines(state, max(1, area.columns - 4))
    rows = max(1, area.rows - 2)
    first = max(0, min(state.choice, len(shown) - rows))
    foot = f"{first + 1}-{min(first + rows, len(shown))}/{len(shown)}" if len(shown) > rows else ""
    inside = box(grid, area, state.theme, "Why", len(shown), max(1, area.columns - 4), foot)
    for at, line in enumerate(shown[first : first + inside.rows], inside.row):
        grid.line(at, inside.column, line, inside.columns)


def last(area: Area, state: State) -> int:
    """Return the largest `state.choice` that still moves the explanation; 0 where all of it fits."""
    return max(0, len(lines(state, max(1, area.columns - 4))) - max(1, area.rows - 2))


def lines(state: State, columns: int) -> list[Line]:
    """Return the explanation, wrapped; before the first judgement, that there is none yet."""
    if not state.diagnosis.verdicts:
        return [Line().add("judging needs about ten seconds of samples", "label")]
    names = {
        None if gpu.index is None else int(gpu.index): gpu.name or "" for gpu in (state.live.gpus if state.live else ())
    }
    return explained(state.diagnosis, names, state.theme, columns)
