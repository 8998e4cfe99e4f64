"""Rules for what breaks: lost GPUs, XIDs, memory errors, throttling, heat, and links that are down, slow or faulty."""

from __future__ import annotations

from ...model.catalog import Gpu
from ...model.condition import BRAKES, CONDITIONS, HEAT
from ...model.event import Event
from ...model.select import Wanted
from ..readings import LINK_KEYS, below_maximum, in_use
from .rule import PLACE, Finding, Lasting, duration, number, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .rule import RuleInput
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
            event = sample.event(kind, uuid, gpu, value=gpu.xid_last if lost else None, values=values)
            # a driver may be slow for a moment, but lost is lost
            yield Finding(uuid, lost or kind == "timeout", event=event, patience=0.0 if lost else None)
        self._forget_places(sample)
        for uuid in self._known.keys() - sample.gpus.keys():
            event = Event(sample.snapshot.time, "removed", (self._known[uuid] or "?",), uuids=(uuid,))
            yield Finding(uuid, True, event=event)

    def _forget_places(self, sample: RuleInput) -> None:
        """Forget a GPU without UUID, known by its place only, if the GPU with its number has a UUID now."""
        numbers = {number_of(gpu) for gpu in sample.gpus.values()}
        for uuid in [uuid for uuid in self._known.keys() - sample.gpus.keys() if uuid.startswith(PLACE)]:
            if self._known[uuid] in numbers:
                del self._known[uuid]


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
                event = sample.event("xid", uuid, gpu, value=float(code), values={"xid_last": code})
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
            yield Finding(uuid, rise > 0, event=sample.event("memory-errors", uuid, gpu, value=rise, values=values))


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
            reasons = [word for word in gpu.throttle_reasons if word in _SLOWED]
            values: dict[str, float | str] = {"throttle_reasons": " ".join(reasons)}
            values |= {
                key: value for key in ("clock_sm", "temperature") if isinstance(value := gpu.get(key), (int, float))
            }
            yield Finding(
                uuid, bool(reasons), event=sample.event("throttled", uuid, gpu, reasons=reasons, values=values)
            )


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
        event = sample.event("hot", uuid, gpu, value=degrees, values={key: degrees, "above": above}, note=what)
        return Finding(uuid, degrees >= above, degrees <= above - self.value("margin"), event=event, what=what)


_ERRORS = CONDITIONS["link_errors"].needs


class _Watched(Lasting):
    """A rule that tells what the watch over links has found; what it no longer finds is over."""

    settings = {"for": (duration, 0.0), "clear_for": (duration, 60.0)}

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


class NvlinkDown(_Watched):
    """A GPU with fewer NVLinks up than before."""

    name = "nvlink_down"
    wanted = Wanted(gpu=CONDITIONS[name].needs)


class FabricNotReady(_Watched):
    """A GPU that the NVLink fabric has not taken in, or that reports it as unhealthy."""

    name = "fabric_not_ready"
    wanted = Wanted(gpu=CONDITIONS[name].needs)


class PortFlaps(_Watched):
    """A network port that goes down again and again."""

    name = "port_flaps"
    wanted = Wanted(host=CONDITIONS[name].needs)


class SlowerThanPeers(_Watched):
    """A GPU with a slower memory clock or a narrower PCIe link than GPUs of the same model beside it."""

    name = "slower_than_peers"
    wanted = Wanted(gpu=CONDITIONS[name].needs)


class PcieDegraded(Lasting):
    """A PCIe link below the maximum of GPU and slot while the GPU is in use; at idle a lower generation is normal."""

    name = "pcie_degraded"
    settings = {"for": (duration, 30.0), "clear_for": (duration, 60.0)}
    wanted = Wanted(gpu=("utilization", "pcie_rx", "pcie_tx", *LINK_KEYS))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        for uuid, gpu in sample.gpus.items():
            if gpu.pcie_width is None and gpu.pcie_gen is None:
                continue
            low = below_maximum(gpu)
            event = sample.event("pcie-degraded", uuid, gpu, values=low)
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
                    event = sample.event("link-errors", uuid, gpu, value=rise, values=values)
                    yield Finding(uuid, rise > 0, event=event, what=key)
