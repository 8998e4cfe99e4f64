"""The last hours of machines that nothing else records: means per interval of each GPU, in memory."""

from __future__ import annotations

from array import array
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.catalog import Gpu
    from ..model.fleet import HostReport

KEYS = ("utilization", "sm_active", "memory_used", "power_draw", "temperature")
SHORTEST = 15.0  # seconds of one interval, at least
LONGEST = 6 * 3600.0  # seconds that are kept
_ROOM = 32 << 20  # bytes of all values; a fleet of 8,000 GPUs has 52 minutes at 15 seconds
_NONE = float("nan")
UNKNOWN = 255  # of a share in one byte


def share_of(gpu: Gpu) -> float | None:
    """Return how much of a GPU works, in percent: SM activity where it is measured, else utilization."""
    return gpu.utilization if gpu.sm_active is None else gpu.sm_active


def share_byte(share: float | None) -> int:
    """Return a share as one byte: percent, or UNKNOWN."""
    return UNKNOWN if share is None else max(0, min(100, round(share)))


class _Interval:
    """One interval: sums while it lasts, then means in one array; `slots` has the place of each GPU by machine and UUID."""

    __slots__ = ("shares", "slots", "start", "values")

    def __init__(self, start: float, slots: dict[tuple[str, str], int], values: array[float]) -> None:
        self.start = start
        self.slots = slots
        self.values = values
        self.shares: dict[str, int] = {}


class FleetRing:
    """Means of each interval, oldest first; bounded in time and memory. For one writing thread and one reader at a time."""

    def __init__(self, interval: float) -> None:
        self.width = max(SHORTEST, interval)
        self._kept: deque[_Interval] = deque()
        self._slots: dict[tuple[str, str], int] = {}
        self._start = 0.0
        self._sums = array("d")
        self._counts = array("H")
        self._size = 0

    @property
    def since(self) -> float | None:
        """The beginning of what is kept; None before the first interval has ended."""
        return self._kept[0].start if self._kept else None

    def add(self, time: float, hosts: Iterable[HostReport]) -> None:
        """Take the newest values of some machines."""
        start = time - time % self.width
        if start != self._start:
            self._close()
            self._start = start
        for host in hosts:
            for gpu in host.gpus:
                self._take(host.name, gpu)

    def _take(self, host: str, gpu: Gpu) -> None:
        key = (host, gpu.uuid or str(gpu.index))
        slot = self._slots.get(key)
        if slot is None:
            self._slots = {**self._slots, key: len(self._slots)}  # a copy: intervals that have ended keep theirs
            slot = self._slots[key]
        while len(self._counts) <= slot * len(KEYS) + len(KEYS) - 1:
            self._sums.append(0.0)
            self._counts.append(0)
        for place, name in enumerate(KEYS, slot * len(KEYS)):
            value = getattr(gpu, name)
            if value is not None and self._counts[place] < 65_535:
                self._sums[place] += value
                self._counts[place] += 1

    def _close(self) -> None:
        """End the open interval and drop what is too old or too much."""
        if not any(self._counts):
            return
        pairs = zip(self._sums, self._counts, strict=True)
        ended = _Interval(self._start, self._slots, array("f", [_NONE if not n else total / n for total, n in pairs]))
        ended.shares = _shares(ended)
        self._kept.append(ended)
        self._size += 4 * len(ended.values)
        self._sums, self._counts = array("d", bytes(8 * len(self._sums))), array("H", bytes(2 * len(self._counts)))
        while self._size > _ROOM or self._kept[0].start < self._start - LONGEST:
            self._size -= 4 * len(self._kept.popleft().values)

    def history(
        self, host: str, start: float, end: float
    ) -> tuple[list[float], dict[tuple[str, str], list[float | None]]]:
        """Return the times and, by UUID and metric, the values of one machine."""
        chosen = [one for one in list(self._kept) if start <= one.start <= end]
        uuids = dict.fromkeys(uuid for one in chosen[-1:] + chosen[:1] for name, uuid in one.slots if name == host)
        found: dict[tuple[str, str], list[float | None]] = {}
        for uuid in uuids:
            for place, key in enumerate(KEYS):
                values = [_value(one, (host, uuid), place) for one in chosen]
                if any(value is not None for value in values):
                    found[uuid, key] = values
        return [one.start for one in chosen], found

    def shares(self, times: list[float], step: float) -> dict[str, bytearray]:
        """Return the share of each machine in each interval that begins at `times`, one byte each; UNKNOWN where nothing is known."""
        found: dict[str, bytearray] = {}
        sums: dict[str, dict[int, list[int]]] = {}
        for one in list(self._kept):
            at = int((one.start - times[0]) // step)
            if 0 <= at < len(times):
                for host, share in one.shares.items():
                    sums.setdefault(host, {}).setdefault(at, []).append(share)
        for host, places in sums.items():
            row = found.setdefault(host, bytearray([UNKNOWN]) * len(times))
            for at, known in places.items():
                row[at] = round(sum(known) / len(known))
        return found


def _value(interval: _Interval, key: tuple[str, str], place: int) -> float | None:
    slot = interval.slots.get(key)
    at = -1 if slot is None else slot * len(KEYS) + place
    value = interval.values[at] if 0 <= at < len(interval.values) else _NONE
    return value if value == value else None


def _shares(interval: _Interval) -> dict[str, int]:
    """Return the mean share of the GPUs of each machine."""
    sums: dict[str, tuple[float, int]] = {}
    for (host, _), slot in interval.slots.items():
        busy, active = (
            interval.values[slot * len(KEYS) : slot * len(KEYS) + 2]
            if (slot + 1) * len(KEYS) <= len(interval.values)
            else (_NONE, _NONE)
        )
        share = active if active == active else busy
        if share == share:
            total, count = sums.get(host, (0.0, 0))
            sums[host] = total + share, count + 1
    return {host: share_byte(total / count) for host, (total, count) in sums.items()}
