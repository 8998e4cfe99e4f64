"""pcie_degraded: under load the PCIe link runs narrower or slower than both ends can."""

from __future__ import annotations

from ...readings import BUSY, TRAFFIC
from ..load import link_rate
from ..rule import DiagnosisRule, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

_SAMPLES = 3


def _judge(case: Case) -> Verdict | None:
    load, gpu = case.load, case.gpu
    width_max, gen_max = gpu.last("pcie_width_max"), gpu.last("pcie_gen_max")
    used = _under_load(case)
    if len(used) < _SAMPLES:
        return None
    widths = [value for at in used if (value := gpu.columns["pcie_width"][at]) is not None]
    gens = [value for at in used if (value := gpu.columns["pcie_gen"][at]) is not None]
    narrow = bool(widths) and width_max is not None and max(widths) < width_max
    slow = bool(gens) and gen_max is not None and max(gens) < gen_max
    if not narrow and not slow:
        return None
    now, could = link_rate(max(gens, default=None), max(widths, default=None)), link_rate(gen_max, width_max)
    evidence = [
        below("pcie_width", max(widths), width_max) if narrow and width_max is not None else None,
        below("pcie_gen", max(gens), gen_max) if slow and gen_max is not None else None,
        seen("pcie_rx", load.mean("pcie_rx")),
        seen("pcie_tx", load.mean("pcie_tx")),
    ]
    lost = None if now is None or could is None else could - now
    return found(load, "pcie_degraded", "high" if narrow else "medium", evidence, advice=RULE.advice, lost=lost)


def _under_load(case: Case) -> list[int]:
    """Return the places at which the link is in use, or at least the GPU; a link saves power by slowing down when idle."""
    columns = case.gpu.columns
    found_places = []
    for at in range(case.load.first, case.load.end):
        traffic = max(columns["pcie_rx"][at] or 0.0, columns["pcie_tx"][at] or 0.0)
        if traffic >= TRAFFIC or (columns["utilization"][at] or 0.0) >= BUSY:
            found_places.append(at)
    return found_places


RULE = DiagnosisRule(
    "pcie_degraded",
    "limit",
    "window",
    _judge,
    needs=("pcie_width", "pcie_width_max", "pcie_gen", "pcie_gen_max"),
    signature=(
        f"In at least {_SAMPLES} samples under load (utilization {BUSY:.0f} % or traffic over {TRAFFIC / 1e9:g} "
        f"GB/s) the link never reaches the width or "
        "generation that GPU and slot have in common."
    ),
    blind="Idle links slow down to save power and are not judged. Whether the loss matters depends on how much the program copies.",
    sources=("nvidia-smi documentation: pcie.link.gen.gpucurrent", "NVML pcie link functions"),
    advice=("reseat", "bios_slot"),
)
