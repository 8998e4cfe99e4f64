"""Whether the PCIe link of a GPU is below its maximum while it is in use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.catalog import Gpu

LINK_KEYS = ("pcie_gen", "pcie_width", "pcie_gen_max", "pcie_width_max")
TRAFFIC = 0.3e9  # bytes per second that show a link in use
BUSY = 50.0  # percent of utilization that show a GPU in use


def in_use(gpu: Gpu) -> bool | None:
    """Return whether a GPU is busy enough for its link to run at full speed; an idle link slows down to save power."""
    if gpu.utilization is None and gpu.pcie_rx is None:
        return None
    return (gpu.utilization or 0.0) >= BUSY or max(gpu.pcie_rx or 0.0, gpu.pcie_tx or 0.0) >= TRAFFIC


def below_maximum(gpu: Gpu) -> dict[str, float]:
    """Return the link's generation and width where they are below the maximum of GPU and slot; empty if neither is."""
    found: dict[str, float] = {}
    for key in ("pcie_gen", "pcie_width"):
        now, most = gpu.get(key), gpu.get(f"{key}_max")
        if isinstance(now, (int, float)) and isinstance(most, (int, float)) and now < most:
            found |= {key: now, f"{key}_max": most}
    return found
