"""The queue of this machine: who waits for GPUs, who has them, who has reserved them; as a table and as JSON."""

from __future__ import annotations

import os
import time

from ..analysis.free import slots
from ..analysis.turns import latest_end, turns
from ..errors import GpulseError, UsageError
from ..model.codec import time_text
from ..present.queue import lock_note, queue_lines
from ..present.words import label
from ..sources.files import read_bytes
from ..sources.privacy import privacy_in_force
from ..sources.secrets import mask
from ..store.entry import Entry
from ..store.locks import locked_entries
from ..store.queue import Queue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from ..analysis.turns import Slot, Turn
    from ..sampling.sampler import Sampler
    from ..sources.privacy import Privacy

_MOST = 10_000  # characters of a command


class QueueView:
    """The queue at one moment: what is in it, which GPUs are locked, whose turn it is, and the machine's GPUs by UUID."""

    def __init__(self, found: Sequence[Entry], seen: Sequence[Slot], names: dict[str, str], now: float) -> None:
        self.now = now
        self.slots = seen
        self.names = names
        # another machine's may be in the same folder
        self.entries = [
            entry
            for entry in found
            if not names or not (there := {*entry.gpus, *(entry.among or ())}) or there & names.keys()
        ]
        self.turns: list[Turn] = turns(now, seen, self.entries)
        privacy = privacy_in_force(os.environ)
        self.entries += locked_entries(names or None, self.entries)
        self.commands = {entry.id: _command(entry, privacy) for entry in self.entries}
        self.users = {entry.id: privacy.user(entry.user, entry.uid) for entry in self.entries}

    def lines(self, columns: int) -> list[str]:
        """Return a table."""
        return queue_lines(self.entries, self.turns, self.names, self.users, self.commands, self.now, columns)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, times as RFC 3339."""
        by_id = {turn.entry.id: turn for turn in self.turns}
        shown = sorted(self.entries, key=lambda entry: by_id[entry.id].position if entry.id in by_id else 0)
        return {
            "schema": 1,
            "time": time_text(self.now),
            "queue": [self._plain(entry, by_id.get(entry.id)) for entry in shown],
        }

    def _plain(self, entry: Entry, turn: Turn | None) -> dict[str, Any]:
        ends = entry.until if entry.kind == "reserved" else latest_end(entry, self.now)
        return {
            "id": None if entry.kind == "locked" else entry.id,
            "state": entry.kind,
            "user": self.users[entry.id] or None,
            "command": self.commands[entry.id],
            "pid": entry.pid,
            "count": entry.count,
            "gpus": list(entry.gpus),
            "share": entry.share,
            "memory": entry.memory,
            "reason": lock_note(entry).lstrip("; ") if entry.kind == "locked" else entry.reason,
            "since": time_text(since) if (since := entry.since if entry.begins is None else entry.begins) else None,
            "expected_end": None if ends is None or entry.kind == "waiting" else time_text(ends),
            "position": None if turn is None else turn.position,
            "expected_start": None if turn is None or turn.starts is None else time_text(turn.starts),
            "why": None if turn is None else turn.why,
        }


def queue_view(sampler: Sampler | None, queue: Queue) -> QueueView:
    """Return the queue now, with the GPUs of an open sampler; without one the GPUs are known by UUID only."""
    now = time.time()
    if sampler is None:
        return QueueView(queue.entries(), (), {}, now)
    snapshot = sampler.read()
    parts = [(whole, gpu) for whole in snapshot.gpus for gpu in whole.instances or (whole,) if gpu.uuid]
    names = {str(gpu.uuid): label(whole) if gpu is whole else f"{label(whole)}:{label(gpu)}" for whole, gpu in parts}
    return QueueView(queue.entries(), slots(snapshot, ()), names, now)


def named(word: str, kinds: Collection[str], what: str, queue: Queue) -> Entry:
    """Return an entry of this user, as root of anybody, by the start of its id; without a word the only one there is."""
    found = [entry for entry in queue.entries() if entry.kind in kinds and entry.id.startswith(word)]
    mine = [entry for entry in found if os.getuid() == 0 or queue.owns(entry)]
    if found and not mine:
        owner = privacy_in_force(os.environ).user(found[0].user, found[0].uid)
        raise GpulseError(f"{what} {word} belongs to {owner}.", "Ask them, or an administrator.")
    if len(mine) != 1:
        some = ", ".join(entry.id for entry in mine[:8])
        told = f"there is no {what} {word!r}" if word else f"you have no {what}"
        several = f"you have {len(mine)} of them: {some}" if mine else told
        raise UsageError(f"{several};", "`gpulse queue` lists them.")
    return mine[0]


def changed(act: Callable[[], None], entry: Entry) -> None:
    """Change an entry's file; raise GpulseError if that fails."""
    try:
        act()
    except OSError as error:
        raise GpulseError(f"{entry.path or 'the reservation'}: {error.strerror}.") from None


def _command(entry: Entry, privacy: Privacy) -> str:
    """Return the command of an entry as far as this user may see it, with secrets masked.

    The kernel says who may see what, and so do the settings.
    """
    if entry.pid is not None and privacy.hides(entry.uid):
        return entry.program if privacy.commands == "program" else ""
    words = (read_bytes(f"/proc/{entry.pid}/cmdline") or b"").rstrip(b"\0").split(b"\0") if entry.pid else []
    names = [os.fsdecode(word) for word in words]
    if entry.kind == "locked":
        return mask(names)[:_MOST]
    at = next((at for at, word in enumerate(names) if os.path.basename(word) == entry.program and at), None)
    return entry.program if at is None else mask(names[at:])[:_MOST]
