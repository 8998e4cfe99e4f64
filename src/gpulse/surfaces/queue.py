"""The queue of this machine: who waits for GPUs, who has them, who has reserved them; as a table and as JSON."""

from __future__ import annotations

import os
import time

from ..analysis.free import slots
from ..analysis.turns import latest_end, turns
from ..errors import GpulseError, UsageError
from ..model.codec import time_text
from ..present.queue import queue_lines
from ..present.words import label
from ..sources.files import read_bytes
from ..sources.privacy import privacy_in_force
from ..sources.secrets import mask
from ..store.claims import machine_policy
from ..store.queue import Entry, entries, uptime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..analysis.turns import Slot, Turn
    from ..sampling.sampler import Sampler
    from ..sources.privacy import Privacy

_MOST = 10_000  # characters of a command
_HOUR = 3600.0


class QueueView:
    """The queue at one moment: what is in it, whose turn it is, and the machine's GPUs by UUID."""

    def __init__(self, found: Sequence[Entry], seen: Sequence[Slot], names: dict[str, str], now: float) -> None:
        self.now = now
        self.slots = seen
        self.names = names
        # another machine's, or the demo's, may lie in the same folder
        self.entries = [
            entry
            for entry in found
            if not names or not (there := {*entry.gpus, *(entry.among or ())}) or there & names.keys()
        ]
        self.turns: list[Turn] = turns(now, seen, self.entries, machine_policy())
        privacy = privacy_in_force(os.environ)
        self.commands = {entry.id: _command(entry, privacy) for entry in self.entries}
        self.users = {entry.id: privacy.user(entry.user, entry.uid) for entry in self.entries}

    def lines(self, columns: int) -> list[str]:
        """Return a table."""
        return queue_lines(self.entries, self.turns, self.names, self.users, self.commands, self.now, columns)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data, times as RFC 3339."""
        by_id = {turn.entry.id: turn for turn in self.turns}
        shown = [entry for entry in self.entries if entry.kind != "done"]
        shown.sort(key=lambda entry: by_id[entry.id].position if entry.id in by_id else 0)
        return {
            "schema": 1,
            "time": time_text(self.now),
            "queue": [self._plain(entry, by_id.get(entry.id)) for entry in shown],
        }

    def _plain(self, entry: Entry, turn: Turn | None) -> dict[str, Any]:
        ends = entry.until if entry.kind == "reserved" else latest_end(entry, self.now)
        return {
            "id": entry.id,
            "state": entry.kind,
            "user": self.users[entry.id],
            "command": self.commands[entry.id],
            "pid": entry.pid,
            "count": entry.count,
            "gpus": list(entry.gpus),
            "share": entry.share,
            "memory": entry.memory,
            "reason": entry.reason,
            "since": time_text(entry.since if entry.begins is None else entry.begins),
            "expected_end": None if ends is None or entry.kind == "waiting" else time_text(ends),
            "position": None if turn is None else turn.position,
            "expected_start": None if turn is None or turn.starts is None else time_text(turn.starts),
            "why": None if turn is None else turn.why,
        }


def queue_view(sampler: Sampler | None, demo: bool = False) -> QueueView:
    """Return the queue now, with the GPUs of an open sampler; without one the GPUs are known by UUID only."""
    now = time.time()
    if sampler is None:
        return QueueView(entries(), (), {}, now)
    snapshot = sampler.read()
    parts = [(whole, gpu) for whole in snapshot.gpus for gpu in whole.instances or (whole,) if gpu.uuid]
    names = {str(gpu.uuid): label(whole) if gpu is whole else f"{label(whole)}:{label(gpu)}" for whole, gpu in parts}
    found = [*entries(), *(_demo([*names], now) if demo else ())]
    return QueueView(found, slots(snapshot, ()), names, now)


def named(word: str, kinds: Sequence[str], what: str) -> Entry:
    """Return an entry of this user, as root of anybody, by the start of its id; without a word the only one there is."""
    found = [entry for entry in entries() if entry.kind in kinds and entry.id.startswith(word)]
    mine = [entry for entry in found if os.getuid() in (0, entry.uid)]
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
    at = next((at for at, word in enumerate(names) if os.path.basename(word) == entry.program and at), None)
    return entry.program if at is None else mask(names[at:])[:_MOST]


def _demo(uuids: Sequence[str], now: float) -> list[Entry]:
    """Return the queue of the demo machine."""
    came = uptime()
    return [
        Entry("3fa1c2", "running", "ada", gpus=uuids[:2], count=2, since=now - 26.4 * _HOUR, shortest=28 * _HOUR,
              longest=31 * _HOUR, program="torchrun train.py"),
        Entry("90b7de", "reserved", "linus", uid=-2, gpus=uuids[5:6], begins=now - _HOUR, until=now + 7 * _HOUR,
              reason="paper deadline"),
        Entry("c41e08", "waiting", "noor", count=4, since=now - 0.7 * _HOUR, arrived=came - 2520, program="torchrun sft.py"),
        Entry("d2290f", "waiting", "grace", count=1, since=now - 0.2 * _HOUR, arrived=came - 720, program="python eval.py"),
    ]  # fmt: skip
