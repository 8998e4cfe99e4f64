"""Rules for links: what the watch over links has found, a PCIe link that is slower than it could be, and errors that grow."""

from __future__ import annotations

from ...model.condition import CONDITIONS
from ...model.select import Wanted
from ..links import LINK_KEYS, below_maximum, in_use
from .rule import Finding, Lasting, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...model.event import Event
    from .rule import RuleInput

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
