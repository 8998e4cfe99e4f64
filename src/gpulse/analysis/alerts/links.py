"""The rule for a PCIe link that is narrower or slower than it could be."""

from __future__ import annotations

from ...model.select import Wanted
from ..links import LINK_KEYS, below_maximum, in_use
from .rule import Finding, Lasting, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .rule import RuleInput


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
