"""An entry of the queue for GPUs, as a value: a request that waits, a claim that runs, a reservation, or GPUs that are only locked."""

from __future__ import annotations

from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Literal, TypeAlias

    Kind: TypeAlias = Literal["waiting", "running", "reserved", "locked"]


class Entry(Value):
    """A request that waits, a claim that runs, a reservation, or GPUs that are locked by a process without any of these.

    Times are in seconds since 1970, lengths in seconds.

    `gpus` are the UUIDs it has, `among` those it can use (None: any). `since` is when its file was last written: when it came to
    wait or run, or was reserved or extended. `arrived` is when it came to wait, by the clock that counts since boot and is never
    set. `begins` and `until` are those of a reservation. `shortest` and `longest` are how long the command took before, None if
    that is not known. `memory` is what a `share` of a GPU needs.
    """

    id: str
    kind: Kind
    user: str
    uid: int = -1
    count: int = 1
    gpus: Sequence[str] = ()
    among: Collection[str] | None = None
    memory: float | None = None
    share: bool = False
    arrived: float = 0.0
    since: float = 0.0
    begins: float | None = None
    until: float | None = None
    shortest: float | None = None
    longest: float | None = None
    program: str = ""
    reason: str = ""
    pid: int | None = None
    path: str = ""
    stopped: bool = False
    cancelled: bool = False


def in_force(entry: Entry, now: float) -> bool:
    """Return whether a reservation holds now."""
    return entry.kind == "reserved" and (entry.begins or 0.0) <= now < (entry.until or 0.0)


def holder_now(uuid: str, entries: Iterable[Entry], now: float) -> Entry | None:
    """Return who holds a GPU: the reservation in force, else a claim."""
    found = [entry for entry in entries if uuid in entry.gpus]
    reserved = [entry for entry in found if in_force(entry, now)]
    return next(iter([*reserved, *(entry for entry in found if entry.kind == "running")]), None)


def first_come(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries, the oldest file first, each without the GPUs that an older entry of another user has at the same time.

    An entry that has no GPU left is left out.
    """
    kept: list[Entry] = []
    for entry in sorted(entries, key=lambda one: (one.since, one.id)):
        rivals = [one for one in kept if _exclude(one, entry)]
        gpus = tuple(uuid for uuid in entry.gpus if not any(uuid in one.gpus for one in rivals))
        if gpus or not entry.gpus:
            kept.append(entry if len(gpus) == len(entry.gpus) else entry.replace(gpus=gpus, count=len(gpus)))
    return kept


def _exclude(one: Entry, other: Entry) -> bool:
    """Return whether two entries cannot have the same GPU."""
    if one.uid == other.uid or one.kind != other.kind:
        return False  # a job that runs may finish on a GPU that is reserved
    if one.kind == "reserved":
        return (one.begins or 0.0) < (other.until or 0.0) and (other.begins or 0.0) < (one.until or 0.0)
    return one.kind == "running" and not (one.share and other.share)
