"""The menu of signals: which one, and to whom."""

from __future__ import annotations

from ..processes import all_rows
from ..signals import SIGNALS
from .frame import choices, shown_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.snapshot import Snapshot
    from ..area import Area
    from ..grid import Grid
    from ..state import State

_SLACK = 1.0  # seconds that running times may be off
_NAMED = 4  # processes named before the rest is only counted


def recipients(state: State) -> list[int]:
    """Return who would get a signal: the tagged processes, else the selected one, as far as they still run.

    A sample of the past may hold a number that another process has by now: only one that is older now than then counts.
    """
    now = _ages(state.live)
    then = _ages(state.shown)
    wanted = sorted(state.tagged) if state.tagged else [] if state.selected is None else [state.selected]
    return [pid for pid in wanted if pid in now and now[pid] >= then.get(pid, 0.0) - _SLACK]


def _ages(snapshot: Snapshot | None) -> dict[int | None, float]:
    return {row.pid: row.process.running_time or 0.0 for row in all_rows(snapshot)} if snapshot else {}


def chosen(state: State) -> str:
    """Return the name of the signal under the cursor."""
    return SIGNALS[_choice(state)][0]


def row_at(area: Area, state: State, y: int) -> int | None:
    """Return which signal is drawn in a screen row, as a position in SIGNALS; None outside the list."""
    rows = min(area.rows - 2, len(SIGNALS))  # the box has a row above and one below, in the middle of the area
    at = y - (area.row + (area.rows - rows - 2) // 2 + 1)
    return at + shown_from(_choice(state), len(SIGNALS), rows) if 0 <= at < rows else None


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the menu in a box; the signal under the cursor is `state.choice`."""
    choices(grid, area, state.theme, title(state), _lines(state), _choice(state))


def title(state: State) -> str:
    """Return who would get the signal, in words."""
    pids = recipients(state)
    if not pids:
        return "No process to signal"
    names = ", ".join(str(pid) for pid in pids[:_NAMED])
    more = f" and {len(pids) - _NAMED} more" if len(pids) > _NAMED else ""
    return f"Signal process{'' if len(pids) == 1 else 'es'} {names}{more}"


def _choice(state: State) -> int:
    return max(0, min(state.choice, len(SIGNALS) - 1))


def _lines(state: State) -> list[tuple[str, str]]:
    here = state.theme.glyph("▸", ">")  # without colours the cursor would not be seen
    return [
        (f"{here if at == _choice(state) else ' '} {at + 1} {name}", meaning)
        for at, (name, meaning) in enumerate(SIGNALS)
    ]
