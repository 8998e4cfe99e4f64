"""The signal menu: whom a signal will reach, and which signal."""

from __future__ import annotations

from ..processes import all_rows
from ..signals import SIGNALS, signal_number
from .menu import Menu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.snapshot import Snapshot
    from ....screen.grid import Grid
    from ..area import Area
    from ..processes import ProcessRow
    from ..state import State

_SLACK = 1.0  # tolerance of running times in seconds
_NAMED = 4  # maximum number of processes to name; the rest is counted
_COMMAND = 60  # cells of a command


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


def typed(state: State, digit: str) -> None:
    """Select a signal by its number, typed digit by digit: 9 is KILL, 1 and 5 are TERM."""
    numbers = [str(signal_number(name)) for name, _ in SIGNALS]
    text = state.digits + digit
    state.digits = text if any(number.startswith(text) for number in numbers) else digit
    matching = [number for number in numbers if number.startswith(state.digits)]
    if matching:
        state.choice = numbers.index(state.digits if state.digits in numbers else matching[0])
    else:
        state.digits, state.message = "", f"no signal has the number {digit}"


def paint(grid: Grid, area: Area, state: State) -> None:
    """Draw the menu in a box; the signal under the cursor is `state.choice`."""
    menu(state).paint(grid, area, state.theme)


def menu(state: State) -> Menu:
    """Return the menu: the processes to signal above the signals."""
    count = len(recipients(state))
    name = chosen(state)
    to = "" if not count else "this process" if count == 1 else f"these {count} processes"
    hint = f"Enter sends {name} ({signal_number(name)}) to {to}, Esc cancels." if to else "Esc closes."
    return Menu(title(state), _lines(), state.choice, above=[*targets(state), ("", "")], hint=hint)


def title(state: State) -> str:
    """Return the title: how many processes get the signal."""
    count = len(recipients(state))
    return (
        "No process to signal"
        if not count
        else "Send a signal"
        if count == 1
        else f"Send a signal to {count} processes"
    )


def targets(state: State) -> list[tuple[str, str]]:
    """Return PID, user and command of the processes to signal, each with a style; the others are counted."""
    pids = recipients(state)
    rows = {row.pid: row for row in all_rows(state.live)} if state.live else {}
    users = max((len(rows[pid].process.user or "?") for pid in pids[:_NAMED]), default=0)
    lines = [(_target(rows[pid], users), "calm") for pid in pids[:_NAMED]]
    return [*lines, (f"and {len(pids) - _NAMED} more", "label")] if len(pids) > _NAMED else lines


def _target(row: ProcessRow, users: int) -> str:
    from ....present.text import clean, fit

    process = row.process
    command = fit(clean(process.command or process.name or "?"), _COMMAND)
    return f"{row.pid:>7}  {clean(process.user or '?'):<{users}}  {command}"


def _choice(state: State) -> int:
    return max(0, min(state.choice, len(SIGNALS) - 1))


def _lines() -> list[tuple[str, str]]:
    return [(f"{signal_number(name):>2} {name:<6} {meaning}", "") for name, meaning in SIGNALS]
