"""pcie_degraded: under load the PCIe link runs narrower or slower than both ends can."""

from __future__ import annotations

from ....model.catalog import PCIE_LINK
from ...readings import BUSY, TRAFFIC
from ..rule import DiagnosisRule, Span, Verdict, below, facts
from ..span import link_rate

_SAMPLES = 3


def _judge(span: Span) -> Verdict | None:
    gpu = span.gpu
    width_max, gen_max = gpu.last("pcie_width_max"), gpu.last("pcie_gen_max")
    used = _under_load(span)
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
        *facts(span, "pcie_rx", "pcie_tx"),
    ]
    lost = None if now is None or could is None else could - now
    return RULE.found(span, "high" if narrow else "medium", evidence, lost=lost)


def _under_load(span: Span) -> list[int]:
    """Return the places at which the link is in use, or at least the GPU; a link saves power by slowing down when idle."""
    places: set[int] = set()
    for key, least in {"pcie_rx": TRAFFIC, "pcie_tx": TRAFFIC, "utilization": BUSY}.items():
        places.update(at for at, value in enumerate(span.values(key), span.first) if (value or 0.0) >= least)
    return sorted(places)


RULE = DiagnosisRule(
    "pcie_degraded", "limit", "window", _judge, needs=PCIE_LINK,
    advice=("reseat", "bios_slot"),
    signature=(
        f"In at least {_SAMPLES} samples under load (utilization {BUSY:.0f} % or traffic over {TRAFFIC / 1e9:g} GB/s) "
        "the link never reaches the width or generation that GPU and slot have in common."
    ),
    blind="Idle links slow down to save power and are not judged. Whether the loss matters depends on how much the program copies.",
    sources=("nvidia-smi documentation: pcie.link.gen.gpucurrent", "NVML pcie link functions"),
)  # fmt: skip
