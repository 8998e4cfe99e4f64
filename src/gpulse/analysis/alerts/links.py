"""Rules for links: a PCIe link that is narrower or slower than it could be, and errors that grow."""

from __future__ import annotations

from ...model.select import Wanted
from ..links import LINK_KEYS, below_maximum, in_use
from .rule import Finding, Lasting, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .rule import RuleInput

_ERRORS = ("pcie_replays", "nvlink_crc_errors", "nvlink_replay_errors", "nvlink_recovery_errors")


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
