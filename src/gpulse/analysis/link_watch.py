"""Links and GPUs below what they were or what their like has: NVLinks, the NVLink fabric, network ports, memory clocks."""

from __future__ import annotations

from collections import deque

from ..model.event import Event
from ..value import Value
from .readings import in_use, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..model.catalog import Gpu
    from ..model.snapshot import Snapshot

FABRIC_START = 60.0  # seconds that a fabric may take to come up when the driver is loaded
SETTLED = 10.0  # seconds for which a GPU must be slower than its like: clocks rise a moment after the work begins
CALM = 60.0  # seconds without a sign before it is over
FLAPS = 3  # times that a port goes down
FLAPS_OVER = 600.0  # seconds in which they count, and without any of which a port is stable again
MEMORY_CLOCK = 0.95  # part of the clock of others that is still the same clock


class LinkWatch:
    """Finds what is wrong with links in snapshots handed over in the order of time. For one thread.

    `open` holds what lasts now. What cannot be read begins and ends nothing.
    """

    def __init__(self) -> None:
        self._spells: dict[tuple[str, str, str], _Spell] = {}
        self._most: dict[str, float] = {}  # NVLinks that were up
        self._ports: dict[str, _Port] = {}

    @property
    def open(self) -> list[Event]:
        return [spell.event for spell in self._spells.values() if spell.told]

    def observe(self, snapshot: Snapshot) -> list[Event]:
        """Return what began, got worse or ended since the snapshot before."""
        found: list[Event] = []
        for gpu in snapshot.gpus:
            if gpu.state == "ok" and gpu.uuid:
                found += self._nvlinks(gpu, snapshot.time)
                found += self._fabric(gpu, snapshot.time)
        for metric in ("pcie_width", "clock_memory"):
            found += self._peers(metric, snapshot)
        return [*found, *self._flaps(snapshot)]

    def _nvlinks(self, gpu: Gpu, time: float) -> Iterator[Event]:
        up = gpu.nvlink_links
        if up is None or gpu.instances:  # a GPU that is split has none on purpose
            return
        most = self._most[gpu.uuid or ""] = max(up, self._most.get(gpu.uuid or "", 0.0))
        if up < most or self._is_open("nvlink-down", gpu):
            event = _event(gpu, time, "nvlink-down", value=up, values={"before": most})
            yield from self._step(event, up < most, 0.0, 0.0)

    def _fabric(self, gpu: Gpu, time: float) -> Iterator[Event]:
        if gpu.fabric_state is None:
            return
        why = gpu.fabric_state if gpu.fabric_state != "completed" else ""
        why = why or (gpu.fabric_status if gpu.fabric_status not in (None, "success") else "") or ""
        why = why or ("unhealthy" if gpu.fabric_health == "unhealthy" else "")
        if why or self._is_open("fabric-not-ready", gpu):
            patience = FABRIC_START if why == "in_progress" else 0.0
            event = _event(gpu, time, "fabric-not-ready", values={"why": why})
            yield from self._step(event, bool(why), patience, 0.0)

    def _peers(self, metric: str, snapshot: Snapshot) -> Iterator[Event]:
        models: dict[str, list[tuple[Gpu, float]]] = {}
        for gpu in snapshot.gpus:
            value = gpu.get(metric)
            if gpu.state == "ok" and gpu.uuid and gpu.name and isinstance(value, (int, float)) and _tells(gpu, metric):
                models.setdefault(gpu.name, []).append((gpu, value))
        for gpus in models.values():
            usual = sorted(value for _, value in gpus)[len(gpus) // 2]  # at least half of them reach it
            least = usual * MEMORY_CLOCK if metric == "clock_memory" else usual
            for gpu, value in gpus if len(gpus) > 1 else ():
                if value < least or self._is_open("slower-than-peers", gpu, metric):
                    values = {"metric": metric, "peers": usual}
                    event = _event(gpu, snapshot.time, "slower-than-peers", value=value, values=values, note=metric)
                    yield from self._step(event, value < least, SETTLED, CALM)

    def _flaps(self, snapshot: Snapshot) -> Iterator[Event]:
        host, time = snapshot.host, snapshot.time
        names, states, downs = host.port_names or (), host.port_states or (), host.port_downs or ()
        for at, name in enumerate(names[: len(states)]):
            port = self._ports.setdefault(name, _Port())
            losses = port.losses(states[at], downs[at] if at < len(downs) else None, time)
            event = Event(time, "port-flaps", value=float(losses), values={"seconds": FLAPS_OVER}, note=name)
            was = ("port-flaps", "", name) in self._spells
            yield from self._step(event, losses >= FLAPS or (was and losses > 0), 0.0, 0.0)

    def _is_open(self, kind: str, gpu: Gpu, note: str = "") -> bool:
        """Tell whether a condition of a GPU has begun: only then, or while it holds, is there an event to make."""
        return (kind, gpu.uuid or "", note) in self._spells

    def _step(self, event: Event, holds: bool, patience: float, calm: float) -> Iterator[Event]:
        key = event.kind, event.uuids[0] if event.uuids else "", event.note
        spell = self._spells.get(key)
        if holds:
            spell = self._spells.setdefault(key, _Spell(event, event.time))
            yield from spell.holds(event, patience)
        elif spell is not None and (not spell.told or not 0 <= event.time - spell.seen < calm):
            del self._spells[key]
            if spell.told:
                yield spell.event.replace(until=event.time if not calm else spell.seen)


class _Spell(Value):
    """One condition from its first sign to its end. `event` is as it was told last, `told` whether it has lasted long enough."""

    event: Event
    seen: float
    told: bool = False

    def holds(self, event: Event, patience: float) -> Iterator[Event]:
        self.seen = event.time
        now = event.replace(time=self.event.time)
        if (self.told and now != self.event) or (not self.told and event.time - self.event.time >= patience):
            self.told, self.event = True, now
            yield now


class _Port:
    """The losses of one network port: as the hardware counts them, or where it does not, as they are seen."""

    __slots__ = ("_count", "_state", "_times")

    def __init__(self) -> None:
        self._count: float | None = None
        self._state = ""
        self._times: deque[float] = deque(maxlen=100)

    def losses(self, state: str, count: float | None, time: float) -> int:
        """Take a sample and return how many times it went down in the last minutes."""
        fell = int(self._state == "active" and state != "active")
        if count is not None and self._count is not None and count > self._count:
            fell = max(fell, int(count - self._count))
        self._count, self._state = count, state
        self._times.extend([time] * min(fell, 100))
        while self._times and not 0 <= time - self._times[0] < FLAPS_OVER:
            self._times.popleft()
        return len(self._times)


def _tells(gpu: Gpu, metric: str) -> bool:
    """Return whether a value is what the GPU can do rather than what it saves: memory clocks and links slow down when idle."""
    return bool(in_use(gpu)) or (metric == "pcie_width" and gpu.pcie_width == gpu.pcie_width_max)


def _event(gpu: Gpu, time: float, kind: str, **fields: Any) -> Event:
    return Event(time, kind, (number_of(gpu) or "?",), uuids=(gpu.uuid or "",), **fields)
