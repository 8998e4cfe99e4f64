"""The queue as text: who holds a GPU until when, who waits for what, and when they may start."""

from __future__ import annotations

import os

from ..analysis.turns import latest_end
from ..units import duration_text, size_text
from .cells import DASH, when_text
from .text import aligned, clean, fit, width
from .words import held_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.turns import Turn
    from ..store.entry import Entry

_NAME = 32  # characters of a user's name
_WHY = {"stopped": "its process is stopped", "impossible": "too few GPUs work"}


def hold_text(entry: Entry, now: float) -> str:
    """Return who holds a GPU, since when and until when: held for ada since 09:12 until about 18:40 (train.py)."""
    from ..sources.privacy import privacy_in_force

    privacy = privacy_in_force(os.environ)
    user = clean(privacy.user(entry.user, entry.uid))[:_NAME]
    if entry.kind == "waiting":
        return f"kept for {user}, who waits for {entry.count}"
    if entry.kind == "locked":
        pid = f" (pid {entry.pid})" if entry.pid else ""
        return f"locked by {user}{pid}" if user else clean(f"locked{lock_note(entry)}")
    if entry.kind == "reserved":
        reason = f" ({clean(entry.reason)})" if entry.reason else ""
        return f"{held_text(user, entry.until, now)}{reason}"
    end = latest_end(entry, now)
    until = "" if end is None else f" until about {when_text(end, now)}"
    program = f" ({clean(entry.program)})" if entry.program and not privacy.hides_name(entry.uid) else ""
    share = f" with {size_text(entry.memory)}" if entry.share and entry.memory is not None else ""
    return f"held for {user}{share} since {when_text(entry.since, now)}{until}{program}"


def lock_note(entry: Entry) -> str:
    """Return what the lock file says about who has it, as a quote: any user can write there. Empty if users are to be numbers."""
    from ..sources.privacy import privacy_in_force

    return (
        f"; its lock file says: {entry.reason}" if entry.reason and privacy_in_force(os.environ).users == "name" else ""
    )


def reserved_text(entry: Entry, names: Mapping[str, str], now: float) -> str:
    """Return what was reserved: Reserved GPUs 0, 2 from 18:00 until tomorrow 02:00; id 3fa1c2."""
    gpus = ", ".join(names.get(uuid, uuid) for uuid in entry.gpus)
    begins = entry.begins or entry.since
    start = "" if begins <= now else f" from {when_text(begins, now)}"
    several = "GPU" if len(entry.gpus) == 1 else "GPUs"
    return f"Reserved {several} {gpus}{start} until {when_text(entry.until or now, now)} (id {entry.id})."


def still_used_text(used: Mapping[str, str]) -> str:
    """Return who uses which GPU, by its name; an empty text is one that nobody uses."""
    return f"still in use: {'; '.join(f'GPU {name}, {clean(who)}' for name, who in used.items() if who)}."


def place_text(turn: Turn, waiting: int, now: float) -> str:
    """Return where a request stands, and when it may start."""
    place = "first in the queue" if turn.position == 1 else f"number {turn.position} of {waiting} in the queue"
    if turn.why in _WHY:
        return f"{place}; {_WHY[turn.why]}"
    if turn.starts is None:
        return f"{place}; when it can start is not known"
    return f"{place}; may start {_start_text(turn.starts, now)}"


def queue_lines(
    entries: Sequence[Entry],
    turns: Sequence[Turn],
    names: Mapping[str, str],
    users: Mapping[str, str],
    commands: Mapping[str, str],
    now: float,
    columns: int,
) -> list[str]:
    """Return the queue as a table: claims, locks and reservations first, then who waits, in order.

    `names` are GPUs by UUID; `users` and `commands` are those of entries by id, as far as they may be seen.
    """
    claims = [entry for entry in entries if entry.kind != "waiting"]
    if not claims and not turns:
        return ["The queue is empty: no GPU is waited for, claimed or reserved."]
    rows = [("ID", "STATE", "USER", "GPUS", "SINCE", "UNTIL")]
    claims.sort(key=lambda entry: (entry.kind, entry.begins or entry.since))
    ids = {entry.id: DASH if entry.kind == "locked" else entry.id for entry in claims}
    rows += [(ids[entry.id], *_claim_row(entry, clean(users[entry.id]), names, now)) for entry in claims]
    rows += [(turn.entry.id, *_waiting_row(turn, clean(users[turn.entry.id]), now)) for turn in turns]
    shown = [*claims, *(turn.entry for turn in turns)]
    what = ["COMMAND", *(commands.get(entry.id) or _remark(entry) for entry in shown)]
    lines = aligned(rows, left=len(rows[0]))
    room = max(width(line) for line in lines)
    return [
        fit(f"{line}{' ' * (room - width(line))}  {clean(text)}".rstrip(), columns)
        for line, text in zip(lines, what, strict=True)
    ]


def _remark(entry: Entry) -> str:
    return lock_note(entry).lstrip("; ") if entry.kind == "locked" else entry.reason


def _claim_row(entry: Entry, user: str, names: Mapping[str, str], now: float) -> tuple[str, str, str, str, str]:
    gpus = ",".join(names.get(uuid, uuid[:12]) for uuid in entry.gpus)
    if entry.kind == "reserved":
        begins = entry.begins or entry.since
        state = "reserved" if begins <= now else "planned"
        return state, user, gpus, when_text(begins, now), when_text(entry.until or now, now)
    if entry.kind == "locked":
        return "locked", user or DASH, gpus, DASH, DASH
    end = latest_end(entry, now)
    until = DASH if end is None else f"~{when_text(end, now)}"
    share = f" ({size_text(entry.memory)})" if entry.share and entry.memory is not None else ""
    return "running", user, f"{gpus}{share}", when_text(entry.since, now), until


def _waiting_row(turn: Turn, user: str, now: float) -> tuple[str, str, str, str, str]:
    entry = turn.entry
    share = f" ({size_text(entry.memory)})" if entry.share and entry.memory is not None else ""
    starts = DASH if turn.starts is None else f"starts {_start_text(turn.starts, now)}"
    return (
        f"waiting {turn.position}",
        user,
        f"{entry.count} wanted{share}",
        when_text(entry.since, now),
        _WHY.get(turn.why, starts),
    )


def _start_text(starts: float, now: float) -> str:
    if starts - now < 60:
        return "soon"
    return f"about {when_text(starts, now)} (in {duration_text(starts - now)})"
