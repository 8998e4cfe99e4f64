"""Rules for devices: lost GPUs, XIDs, memory errors, throttling, heat, links that are down or slow, and memory that fills up."""

from __future__ import annotations

from itertools import pairwise

from ...model.catalog import PCIE_LINK, Gpu, memory_percent
from ...model.condition import BRAKES, CONDITIONS, HEAT
from ...model.event import Event
from ...model.select import Wanted
from ..events import NEARLY_FULL
from ..readings import below_maximum, in_use, number_of
from .rule import Finding, Lasting, duration, number, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .rule import RuleInput
    from .rule_set import HolderProcess
    from .transition import Transition

_SLOWED = HEAT | BRAKES


class Lost(Lasting):
    """A GPU that is lost, that does not respond, or that is no longer there."""

    name = "lost"
    settings = {"for": (duration, 10.0), "clear_for": (duration, 0.0)}

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._known: dict[str, str] = {}

    def resume(self, alert: Transition) -> None:
        super().resume(alert)
        self._known[alert.uuid] = alert.gpu

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            self._known[uuid] = number_of(gpu)
            values = {} if gpu.xid_last is None else {"xid_last": gpu.xid_last}
            lost = gpu.state == "lost"
            kind = "timeout" if gpu.state == "timeout" else "lost"
            event = sample.event(kind, uuid, value=gpu.xid_last if lost else None, values=values)
            # a driver may be slow for a moment, but lost is lost
            down, patience = lost or kind == "timeout", 0.0 if lost else None
            yield Finding(uuid, down, event=event, patience=patience, began=gpu.since)
        for uuid in [*(self._known.keys() - sample.gpus.keys())]:
            event = Event(sample.snapshot.time, "removed", (self._known[uuid] or "?",), uuids=(uuid,))
            if uuid in sample.replaced:
                del self._known[uuid]
            yield Finding(uuid, True, event=event, over=uuid in sample.replaced)


class XidReported(Lasting):
    """An error code of the driver; each code is an alert of its own, so that a second fault is not hidden by the first."""

    name = "xid"
    settings = {"clear_for": (duration, 600.0)}
    wanted = Wanted(gpu=("xid_last", "xids"))

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._codes: dict[str, set[int]] = {}

    def resume(self, alert: Transition) -> None:
        super().resume(alert)
        self._codes.setdefault(alert.uuid, set()).add(int(alert.event.value or 0))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            fresh = {int(event.value or 0) for event in sample.happened("xid", uuid, gpu)}
            known = self._codes.setdefault(uuid, set())
            known.update(fresh)
            # the last code stays for ever: calm is that it did not come again, for a while
            for code in sorted(known) if gpu.xid_last is not None else ():
                event = sample.event("xid", uuid, value=float(code), values={"xid_last": code})
                yield Finding(uuid, code in fresh, event=event, what=str(code))


class Ecc(Lasting):
    """Memory errors that could not be corrected, more than at the sample before."""

    name = "ecc"
    settings = {"clear_for": (duration, 600.0)}
    wanted = Wanted(gpu=("ecc_uncorrected",))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            count = gpu.ecc_uncorrected
            if count is None:
                continue
            rise = sum(event.value or 0.0 for event in sample.happened("memory-errors", uuid, gpu))
            values = {"ecc_uncorrected": count, "rise": rise}
            yield Finding(uuid, rise > 0, event=sample.event("memory-errors", uuid, value=rise, values=values))


class Throttled(Lasting):
    """A GPU that slows itself down from heat, a power brake or another fault; its power cap is how a healthy GPU lives."""

    name = "throttled"
    settings = {"for": (duration, 3.0), "clear_for": (duration, 60.0)}
    wanted = Wanted(gpu=("throttle_reasons", "clock_sm", "temperature"))
    slack = 60.0  # seconds: the reasons come and go every second

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            if gpu.throttle_reasons is None:
                continue
            reasons = tuple(word for word in gpu.throttle_reasons if word in _SLOWED)
            values: dict[str, float | str] = {"throttle_reasons": " ".join(reasons)}
            values |= {
                key: value for key in ("clock_sm", "temperature") if isinstance(value := gpu.get(key), (int, float))
            }
            yield Finding(uuid, bool(reasons), event=sample.event("throttled", uuid, reasons=reasons, values=values))


class Hot(Lasting):
    """A GPU near the temperature at which it slows itself down: its own limit where it says one, else the catalog's."""

    name = "hot"
    settings = {
        "above": (number, None),
        "for": (duration, 30.0),
        "clear_for": (duration, 60.0),
        "margin": (number, 5.0),
    }
    wanted = Wanted(gpu=("temperature", "temperature_limit", "memory_temperature"))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            above, limit = self.given("above"), gpu.temperature_limit or Gpu.temperature.critical or 90.0
            if (degrees := gpu.temperature) is not None:
                # a degree early, since at the limit itself it is already slow and no longer gets hotter
                yield self._finding(sample, uuid, gpu, "temperature", degrees, limit - 1 if above is None else above)
            if (degrees := gpu.memory_temperature) is not None:
                above = Gpu.memory_temperature.critical or 100.0
                yield self._finding(sample, uuid, gpu, "memory_temperature", degrees, above)

    def _finding(self, sample: RuleInput, uuid: str, gpu: Gpu, key: str, degrees: float, above: float) -> Finding:
        what = "memory" if key == "memory_temperature" else ""
        event = sample.event("hot", uuid, value=degrees, values={key: degrees, "above": above}, note=what)
        return Finding(uuid, degrees >= above, degrees <= above - self.value("margin"), event=event, what=what)


_ERRORS = CONDITIONS["link_errors"].needs


class _Watched(Lasting):
    """A rule that tells what the watch over links has found; what it no longer finds is over."""

    settings = {"for": (duration, 0.0), "clear_for": (duration, 60.0)}

    def __init_subclass__(cls, name: str) -> None:
        cls.name, needs = name, CONDITIONS[name].needs
        cls.wanted = Wanted(host=needs) if name == "port_flaps" else Wanted(gpu=needs)

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._known: dict[tuple[str, str], Event] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        kind, time = CONDITIONS[self.name].kind, sample.snapshot.time
        found = {
            (event.uuids[0] if event.uuids else "", event.note): event for event in sample.links if event.kind == kind
        }
        self._known.update(found)
        for key, event in self._known.items():
            yield Finding(key[0], key in found, event=event.replace(time=time), what=key[1])


class NvlinkDown(_Watched, name="nvlink_down"):
    """A GPU with fewer NVLinks up than before."""


class FabricNotReady(_Watched, name="fabric_not_ready"):
    """A GPU that the NVLink fabric has not taken in, or that reports it as unhealthy."""


class PortFlaps(_Watched, name="port_flaps"):
    """A network port that goes down again and again."""


class SlowerThanPeers(_Watched, name="slower_than_peers"):
    """A GPU with a slower memory clock or a narrower PCIe link than GPUs of the same model beside it."""


class PcieDegraded(Lasting):
    """A PCIe link below the maximum of GPU and slot while the GPU is in use; at idle a lower generation is normal."""

    name = "pcie_degraded"
    settings = {"for": (duration, 30.0), "clear_for": (duration, 60.0)}
    wanted = Wanted(gpu=("utilization", "pcie_rx", "pcie_tx", *PCIE_LINK))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            if gpu.pcie_width is None and gpu.pcie_gen is None:
                continue
            low = below_maximum(gpu)
            event = sample.event("pcie-degraded", uuid, values=low)
            # without load nothing is known, so that a pause neither fires nor clears
            yield Finding(uuid, bool(low) if in_use(gpu) else None, not low if in_use(gpu) else None, event=event)


class LinkErrors(Lasting):
    """Errors of the PCIe link or of NVLinks that have grown since the previous sample: a loose card, a bad riser or bridge."""

    name = "link_errors"
    settings = {"clear_for": (duration, 600.0)}
    wanted = Wanted(gpu=_ERRORS)

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        super().__init__(given)
        self._counts: dict[tuple[str, str], float] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            for key in _ERRORS:
                count = gpu.get(key)
                if isinstance(count, (int, float)):
                    rise = count - self._counts.get((uuid, key), count)  # a driver that was reloaded counts from 0
                    self._counts[uuid, key] = count
                    values = {"metric": key, key: count, "rise": rise}
                    event = sample.event("link-errors", uuid, value=rise, values=values)
                    yield Finding(uuid, rise > 0, event=event, what=key)


_WANTED = Wanted(
    gpu=("memory_used", "memory_total", "memory_reserved", "memory_percent"),
    process=("pid", "name", "command", "user", "memory_used", "running_time"),
)
_PEAKS = 8  # intervals that a slope needs, and what `over` is divided by
_RISES = 5
_FLAT = 3  # intervals without a rise after which it no longer grows
_KEPT = 2 * _PEAKS
_SCALES = (1, 4, 16, 64)  # times `over`: a leak of one step per epoch shows only over many epochs
_START = 120.0  # seconds of a process in which it loads, compiles and tries out


class MemoryNearlyFull(Lasting):
    """A GPU whose memory is nearly full, unless those who hold it take it ahead of need: then it says nothing."""

    name = "memory"
    settings = {
        "above": (number, NEARLY_FULL),
        "clear": (number, None),
        "for": (duration, 10.0),
        "clear_for": (duration, 30.0),
    }
    wanted = _WANTED

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        above, clear = self.value("above"), self.given("clear")
        clear = above - 3 if clear is None else clear
        for uuid, gpu in sample.all():
            share = memory_percent(dict(gpu.items())) if gpu.memory_percent is None else gpu.memory_percent
            if share is None or gpu.instances:  # the instances speak for themselves
                continue
            holders = sample.holders.on(gpu)
            ahead = bool(holders) and holders[0].takes_ahead
            process = holders[0].process if holders else None
            event = sample.event("memory-nearly-full", uuid, value=share, process=process, note=sample.note(uuid))
            event = event.replace(values={"memory_percent": share})
            yield Finding(uuid, share >= above and not ahead, share <= clear or ahead, event=event)


class Leak(Lasting):
    """A process whose memory grows without an end: peaks that rise over `over` seconds, by `rise` bytes, and never rest for long.

    The same is looked for over 4, 16 and 64 times as long, where it has to rise by 2, 4 and 8 times as much: allocators fragment, too.
    """

    name = "leak"
    settings = {"over": (duration, 600.0), "rise": (size, float(256 << 20))}
    wanted = _WANTED

    def __init__(self, given: dict[str, float] | None = None) -> None:
        super().__init__(given)
        self._growths: dict[tuple[str, str], list[_Growth]] = {}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        yield from sample.ended(self._growths)
        shortest = max(60.0, self.value("over")) / _PEAKS
        for holder in sample.holders.present():
            if holder.held is None or not sample.answers(holder.uuid):
                continue
            key = holder.uuid, holder.pid
            if (growths := self._growths.get(key)) is None:
                growths = self._growths[key] = [_Growth(shortest * scale) for scale in _SCALES]
            if sample.now - holder.since < _START and (holder.process.running_time or 0.0) < _START:
                continue
            if sum(growth.add(holder.held, sample.now) for growth in growths):
                yield self._finding(holder, growths, sample.snapshot.time)

    def _finding(self, holder: HolderProcess, growths: Sequence[_Growth], time: float) -> Finding:
        grown = (growth for at, growth in enumerate(growths) if growth.rise >= self.value("rise") * 2**at)
        slope = next((slope for growth in grown if (slope := growth.slope()) is not None), None)
        values: dict[str, float | str] = {"memory_used": holder.held or 0.0}
        if slope is not None:
            low, middle, high = slope
            values |= {"bytes_per_second": middle, **_full_in(holder.gpu, low, high)}
        event = holder.event(time, "memory-growth", value=None if slope is None else slope[1], values=values)
        holds = slope is not None and not holder.takes_ahead
        calm = holder.takes_ahead or (slope is None and growths[0].flat)
        return Finding(holder.uuid, holds, calm, event=event, what=holder.pid, patience=0.0)


class _Growth:
    """The peaks of one process, one an interval: a caching allocator makes stairs, and only the peaks tell."""

    __slots__ = ("_interval", "_peaks", "_times", "_until")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._peaks: list[float] = []
        self._times: list[float] = []
        self._until: float | None = None

    def add(self, held: float, now: float) -> bool:
        """Take a sample; True when an interval has come to its end."""
        whole = self._until is not None and now >= self._until
        if self._until is None or whole:
            self._until = now + self._interval
            self._peaks.append(held)
            self._times.append(now)
            del self._peaks[:-_KEPT], self._times[:-_KEPT]
        elif held > self._peaks[-1]:
            self._peaks[-1] = held
        return whole

    @property
    def _done(self) -> tuple[Sequence[float], Sequence[float]]:
        return self._times[:-1], self._peaks[:-1]  # the last interval goes on

    @property
    def rise(self) -> float:
        """Bytes from the first to the last peak."""
        peaks = self._done[1]
        return peaks[-1] - peaks[0] if peaks else 0.0

    @property
    def flat(self) -> bool:
        """Whether it has rested for longer than growth does."""
        peaks = self._done[1]
        return len(peaks) > _FLAT and peaks[-1] <= peaks[-1 - _FLAT]

    def slope(self) -> tuple[float, float, float] | None:
        """Return bytes per second, low bound, middle and high, where it is sure to be growth (Theil-Sen, 95 %); else None."""
        times, peaks = self._done
        count = len(peaks)
        rising = [after > before for before, after in pairwise(peaks)]
        if count < _PEAKS or sum(rising) < _RISES or _longest_rest(rising) > _FLAT:
            return None
        slopes = sorted(
            (peaks[b] - peaks[a]) / (times[b] - times[a]) for a in range(count) for b in range(a + 1, count)
        )
        spread = 1.96 * (count * (count - 1) * (2 * count + 5) / 18) ** 0.5
        low = slopes[max(0, int((len(slopes) - spread) / 2))]
        high = slopes[min(len(slopes) - 1, int((len(slopes) + spread) / 2) + 1)]
        return (low, slopes[len(slopes) // 2], high) if low > 0 else None


def _longest_rest(rising: Sequence[bool]) -> int:
    longest = rest = 0
    for rises in rising:
        rest = 0 if rises else rest + 1
        longest = max(longest, rest)
    return longest


def _full_in(gpu: Gpu, low: float, high: float) -> dict[str, float]:
    """Return in how many seconds the memory is full, with the fastest and the slowest growth that fits."""
    used, total = gpu.memory_used, gpu.memory_total
    if used is None or total is None:
        return {}
    left = max(0.0, total - (gpu.memory_reserved or 0.0) - used)
    return {"full_in_low": left / high, "full_in_high": left / low}
