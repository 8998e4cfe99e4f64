"""The signal menu: choose a signal for the selected processes."""

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

_SLACK = 1.0  # tolerance of running times in seconds
_NAMED = 4  # maximum number of processes to name; the rest is counted


def recipients(state: State) -> list[int]:
    """Return the processes to signal: the tagged ones, else the selected one, if they still run.

    In an earlier sample, a PID may belong to a process that has ended: a process counts only if it started before the sample.
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
    """Return the position in SIGNALS of the signal in a screen row; None outside the list."""
    rows = min(area.rows - 2, len(SIGNALS))  # the centered box has one row above and one below the list
    at = y - (area.row + (area.rows - rows - 2) // 2 + 1)
    return at + shown_from(_choice(state), len(SIGNALS), rows) if 0 <= at < rows else None


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the menu in a box; the signal under the cursor is `state.choice`."""
    choices(grid, area, state.theme, title(state), _lines(state), _choice(state))


def title(state: State) -> str:
    """Return the title with the processes to signal."""
    pids = recipients(state)
    if not pids:
        return "No process to signal"
    names = ", ".join(str(pid) for pid in pids[:_NAMED])
    more = f" and {len(pids) - _NAMED} more" if len(pids) > _NAMED else ""
    return f"Signal process{'' if len(pids) == 1 else 'es'} {names}{more}"


def _choice(state: State) -> int:
    return max(0, min(state.choice, len(SIGNALS) - 1))


def _lines(state: State) -> list[tuple[str, str]]:
    here = state.theme.glyph("▸", ">")  # without colors the cursor would not be visible
    return [
        (f"{here if at == _choice(state) else ' '} {at + 1} {name}", meaning)
        for at, (name, meaning) in enumerate(SIGNALS)
    ]
