"""Whose turn it is: one pure function from the queue and the GPUs to who gets what now, and when the others may start."""

from __future__ import annotations

from ..store.entry import in_force
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..store.entry import Entry

LEAD = 3600.0  # seconds before a reservation in which no job of unknown length is started on its GPUs
_NEVER = float("inf")


class Slot(Value):
    """A GPU as one program sees it.

    `idle`: no process uses it; `fits`: this program's own request may use it; `broken`: nobody can; `locked`: it is claimed, also
    by a program that has no entry in the queue. `used` says who uses it, if it is not idle. Memory is in bytes.
    """

    uuid: str
    product: str = ""
    memory: float | None = None
    idle: bool = True
    fits: bool = True
    locked: bool = False
    broken: bool = False
    used: str = ""


class Turn(Value):
    """What a waiting request gets now: `gpus`, or nothing and `why`; `starts` is when it may start, None if that is not known.

    `position` counts from 1. `why` is one of waiting, stopped (its process is), impossible (too few GPUs work).
    """

    entry: Entry
    position: int
    gpus: tuple[str, ...] = ()
    why: str = ""
    starts: float | None = None


def turns(now: float, slots: Sequence[Slot], entries: Iterable[Entry], me: str = "") -> list[Turn]:
    """Return what each waiting request gets, in order; `slots` are all GPUs of the machine, the best first.

    First come, first served. A request that cannot start keeps the GPUs it could use: a later one gets such a
    GPU only if it took less time in every earlier run than is left until the first request can start at the earliest. `me` is the
    request of the program that asks, for which `fits` counts.
    """
    entries = list(entries)
    board = _Board(now, slots, entries)
    return [board.serve(entry, at, entry.id == me) for at, entry in enumerate(in_order(entries), 1)]


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return the waiting requests, the first that came first."""
    return sorted((one for one in entries if one.kind == "waiting"), key=lambda one: (one.arrived, one.id))


def latest_end(entry: Entry, now: float) -> float | None:
    """Return when a running claim will have ended if it takes no longer than it ever did; None if that is not known."""
    if entry.longest is None or entry.since + entry.longest <= now:
        return None
    return entry.since + entry.longest


def overlapping(uuid: str, entries: Iterable[Entry], begins: float, until: float, uid: int | None) -> Entry | None:
    """Return a reservation of somebody else's for a GPU in this time."""
    for entry in entries:
        theirs = entry.kind == "reserved" and entry.uid != uid and uuid in entry.gpus
        if theirs and (entry.begins or 0.0) < until and begins < (entry.until or 0.0):
            return entry
    return None


def reservable(
    now: float, begins: float, until: float, slots: Sequence[Slot], entries: Sequence[Entry]
) -> tuple[list[str], dict[str, Entry]]:
    """Return the GPUs that can be reserved for a time, the best first, and for each other that works what stands in the way.

    That is another reservation, or a request that waits for the GPU already: nobody gets past the queue by reserving. Jobs that run
    are not in the way; they may finish.
    """
    free: list[Slot] = []
    taken: dict[str, Entry] = {}
    first = [entry for entry in entries if entry.kind == "waiting" and begins <= now]
    for slot in (slot for slot in slots if not slot.broken):
        wanted = next((one for one in first if one.among is None or slot.uuid in one.among), None)
        other = overlapping(slot.uuid, entries, begins, until, None) or wanted
        if other is None:
            free.append(slot)
        else:
            taken[slot.uuid] = other
    used = {uuid for entry in entries if entry.kind == "running" for uuid in entry.gpus}
    free.sort(key=lambda slot: slot.locked or slot.uuid in used or not slot.idle)
    return [slot.uuid for slot in free], taken


class _Board:
    """Who has what while the queue is gone through; each request that is served changes it."""

    def __init__(self, now: float, slots: Sequence[Slot], entries: Sequence[Entry]) -> None:
        self._now = now
        self._slots = slots
        self._holders: dict[str, list[Entry]] = {slot.uuid: [] for slot in slots}
        self._reserved = [entry for entry in entries if entry.kind == "reserved"]
        self._kept: dict[
            str, float
        ] = {}  # GPUs that an earlier request waits for, and when it can start at the earliest
        for entry in entries:
            if entry.kind == "running":
                self._give(entry, entry.gpus)
        self._ends = {slot.uuid: self._end(slot) for slot in slots}

    def serve(self, entry: Entry, position: int, mine: bool) -> Turn:
        """Return the turn of the next request."""
        able = [slot for slot in self._slots if not slot.broken and (entry.among is None or slot.uuid in entry.among)]
        if entry.stopped or len(able) < entry.count:
            return Turn(entry, position, why="stopped" if entry.stopped else "impossible")
        free = [slot for slot in able if self._free(slot, entry, mine) and self._may(slot, entry)]
        chosen = self._chosen(free, entry)
        if chosen:
            self._give(entry.replace(since=self._now), chosen)
            for uuid in chosen:
                self._ends[uuid] = _NEVER if entry.longest is None else self._now + entry.longest
            return Turn(entry, position, chosen, starts=self._now)
        return Turn(entry, position, why="waiting", starts=self._keep(entry, able))

    def _give(self, entry: Entry, gpus: Iterable[str]) -> None:
        for uuid in gpus:
            self._holders.setdefault(uuid, []).append(entry)

    def _free(self, slot: Slot, entry: Entry, mine: bool) -> bool:
        """Return whether a GPU could be used now, no matter who else waits for it."""
        usable = slot.fits if mine else slot.idle or (entry.share and slot.fits)
        if slot.locked or not usable or self._reserved_for_another(slot.uuid, entry) is not None:
            return False
        there = self._holders[slot.uuid]
        if not there or not entry.share or entry.memory is None or slot.memory is None:
            return not there
        shared = all(holder.share and holder.memory is not None for holder in there)
        return shared and entry.memory + sum(holder.memory or 0.0 for holder in there) <= slot.memory

    def _reserved_for_another(self, uuid: str, entry: Entry) -> Entry | None:
        length = LEAD if entry.longest is None else entry.longest
        return overlapping(uuid, self._reserved, self._now, self._now + length, entry.uid)

    def _may(self, slot: Slot, entry: Entry) -> bool:
        """Return whether using a GPU delays nobody who came before; what a user has reserved is theirs."""
        needed = self._kept.get(slot.uuid)
        if needed is None or self._owns(slot.uuid, entry):
            return True
        return entry.longest is not None and self._now + entry.longest <= needed

    def _owns(self, uuid: str, entry: Entry) -> bool:
        return any(one.uid == entry.uid and uuid in one.gpus and in_force(one, self._now) for one in self._reserved)

    def _chosen(self, free: Sequence[Slot], entry: Entry) -> tuple[str, ...]:
        """Return the GPUs to take, of one product if possible: reserved ones first, then those in use by other small jobs."""
        best = sorted(free, key=lambda slot: (not self._owns(slot.uuid, entry), -len(self._holders[slot.uuid])))
        alike: dict[str, list[Slot]] = {}
        for slot in best:
            alike.setdefault(slot.product, []).append(slot)
        chosen = next((some for some in alike.values() if len(some) >= entry.count), best)[: entry.count]
        return tuple(slot.uuid for slot in chosen) if len(chosen) == entry.count else ()

    def _keep(self, entry: Entry, able: Sequence[Slot]) -> float | None:
        """Keep GPUs for a request that must wait; return when it may start, if that can be told."""
        earliest = sorted(self._earliest(slot.uuid, entry) for slot in able)[entry.count - 1]
        for slot in able:
            self._kept[slot.uuid] = min(self._kept.get(slot.uuid, _NEVER), earliest)
        soonest = sorted(able, key=lambda slot: self._ends[slot.uuid])[: entry.count]
        starts = max(self._ends[slot.uuid] for slot in soonest)
        for slot in soonest:
            self._ends[slot.uuid] = _NEVER if entry.longest is None else starts + entry.longest
        return None if starts == _NEVER else max(starts, self._now)

    def _earliest(self, uuid: str, entry: Entry) -> float:
        """Return the earliest moment at which a GPU can be free: a job whose length is not known may end at any time."""
        ends = [holder.since + (holder.shortest or 0.0) for holder in self._holders[uuid]] or [self._now]
        reserved = self._reserved_for_another(uuid, entry)
        over = self._now if reserved is None else reserved.until or self._now
        return max(self._now, over, min(ends) if entry.share else max(ends))

    def _end(self, slot: Slot) -> float:
        """Return when a GPU is expected to be free."""
        ends = [latest_end(holder, self._now) for holder in self._holders[slot.uuid]]
        ends += [entry.until for entry in self._reserved if slot.uuid in entry.gpus and in_force(entry, self._now)]
        if slot.broken or None in ends or not (ends or ((slot.idle or slot.fits) and not slot.locked)):
            return _NEVER
        return max([self._now, *(end for end in ends if end is not None)])
