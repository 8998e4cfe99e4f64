"""Events: what changed between two samples, in words."""

from __future__ import annotations

from .slots import parts_of, sound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .slots import Slots, Statement

_CALM = 10.0  # seconds without a reason before a GPU counts as no longer throttled: some come and go every second
_NORMAL = {"gpu_idle", "sw_power_cap"}  # how an idle GPU and one at full load live; the series have them
_MOST = 10_000  # that wait for a disk with room
_INSERT = "INSERT INTO event(time, gpu, kind, text) VALUES(?, ?, ?, ?)"


class _Seen:
    """What the last sample said of one GPU."""

    __slots__ = ("reasons", "state", "throttled", "xid")

    def __init__(self) -> None:
        self.state = "ok"
        self.reasons: frozenset[str] = frozenset()
        self.throttled: float | None = None  # when a reason was last seen
        self.xid: float | None = None


class Events:
    """The events that the database has to learn, in order, in `news`.

    Kinds: start, stop (the writer), boot, suspend, clock (it was set), added, removed, lost, timeout, asleep, back, throttled,
    unthrottled, xid, dropped (ticks that memory had no room for while the disk was full), process-start, process-end.
    """

    def __init__(self, slots: Slots) -> None:
        self.news: list[Statement] = []
        self._slots = slots
        self._seen: dict[str, _Seen] | None = None

    def add(self, time: float, uuid: str | None, kind: str, text: str) -> None:
        """Note an event of a GPU, or of the machine with None."""
        gpu = None if uuid is None else self._slots.gpu(uuid)
        self.news.append((_INSERT, (time, gpu, kind, sound(text))))
        del self.news[:-_MOST]

    def observe(self, snapshot: Snapshot) -> None:
        """Compare a snapshot with the one before."""
        before, now = self._seen, {}
        for uuid, gpu, _ in parts_of(snapshot):
            seen = None if before is None else before.pop(uuid, None)
            if seen is None:
                seen = _Seen()
                if before is not None:
                    self.add(snapshot.time, uuid, "added", gpu.name or "")
            now[uuid] = seen
            self._compare(seen, uuid, gpu, snapshot.time)
        for uuid in before or ():
            self.add(snapshot.time, uuid, "removed", "")
        self._seen = now

    def _compare(self, seen: _Seen, uuid: str, gpu: Gpu, time: float) -> None:
        if gpu.state != seen.state:
            self.add(time, uuid, "back" if gpu.state == "ok" else gpu.state, f"was {seen.state}")
            seen.state = gpu.state
        if (xid := gpu.xid_last) is not None and xid != seen.xid:
            self.add(time, uuid, "xid", f"XID {xid:.0f}")
            seen.xid = xid
        reasons = frozenset(gpu.throttle_reasons or ()) - _NORMAL
        if reasons and not reasons <= seen.reasons:
            seen.reasons |= reasons
            self.add(time, uuid, "throttled", ", ".join(sorted(reasons)))
        if reasons:
            seen.throttled = time
        elif seen.throttled is not None and not 0 <= time - seen.throttled < _CALM:
            self.add(time, uuid, "unthrottled", ", ".join(sorted(seen.reasons)))
            seen.throttled, seen.reasons = None, frozenset()
