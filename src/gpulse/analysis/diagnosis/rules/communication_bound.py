"""communication_bound: the GPUs of one job spend their time exchanging data."""

from __future__ import annotations

from ....model.catalog import LINK_TRAFFIC
from ..rule import DiagnosisRule, Span, Verdict, above, below, seen

TENSOR = 30.0  # per cent
NVLINK = 60e9  # bytes per second in one direction
PCIE = 0.25  # of the link in each direction
BUSY = 60.0


def _judge(span: Span) -> Verdict | None:
    if not span.peers or (span.busy or 0.0) < BUSY or (span.mean("tensor_active") or 0.0) >= TENSOR:
        return None
    everyone = [span, *span.peers]
    if all(_nvlink(one) >= NVLINK for one in everyone):
        rate, kind, evidence = _nvlink(span), "nvlink", above("nvlink_rx", _nvlink(span), NVLINK)
    elif all(_pcie(one) >= PCIE for one in everyone):
        rate, kind, evidence = span.mean("pcie_rx") or 0.0, "pcie", above("link_share", 100 * _pcie(span), 100 * PCIE)
    else:
        return None
    numbers = [
        evidence,
        below("tensor_active", span.mean("tensor_active"), TENSOR),
        above("busy", span.busy, BUSY),
        seen("peers", float(len(span.peers))),
    ]
    return RULE.found(span, "medium" if span.detailed else "low", numbers, kind=kind, rate=rate)


def _nvlink(span: Span) -> float:
    return min(span.mean("nvlink_rx") or 0.0, span.mean("nvlink_tx") or 0.0)


def _pcie(span: Span) -> float:
    """Return the share of the link (0–1) that both directions use at least; loading data uses only one."""
    link = span.link
    return 0.0 if not link else min(span.mean("pcie_rx") or 0.0, span.mean("pcie_tx") or 0.0) / link


RULE = DiagnosisRule(
    "communication_bound", "feeding", "job", _judge,
    needs=(*LINK_TRAFFIC, "processes"),
    advice=("accumulate_gradients", "overlap", "nccl_transport"),
    signature=(
        f"All GPUs of one job move {NVLINK / 1e9:.0f} GB/s or more both ways over NVLink, or {100 * PCIE:.0f} % of the "
        f"PCIe link both ways, while their tensor cores stay below {TENSOR:.0f} %."
    ),
    blind=(
        "Traffic between machines passes a network card that gpulse cannot assign to a GPU. Overlap of computing and "
        "exchange is not visible."
    ),
    sources=(
        "PyTorch profiler TensorBoard plugin: communication over 10 % of the step",
        "ICSE 2024 study: data exchange, 7.1 % of the issues",
    ),
)  # fmt: skip
