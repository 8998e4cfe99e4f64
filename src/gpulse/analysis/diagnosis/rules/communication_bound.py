"""communication_bound: the GPUs of one job spend their time exchanging data."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..load import Load
    from ..rule import Case

TENSOR = 30.0  # per cent
NVLINK = 60e9  # bytes per second in one direction
PCIE = 0.25  # of the link in each direction
BUSY = 60.0


def _judge(case: Case) -> Verdict | None:
    load = case.load
    if not case.peers or (load.busy or 0.0) < BUSY or (load.mean("tensor_active") or 0.0) >= TENSOR:
        return None
    everyone = [load, *case.peers]
    if all(_nvlink(one) >= NVLINK for one in everyone):
        rate, kind, evidence = _nvlink(load), "nvlink", above("nvlink_rx", _nvlink(load), NVLINK)
    elif all(_pcie(one) >= PCIE for one in everyone):
        rate, kind, evidence = load.mean("pcie_rx") or 0.0, "pcie", above("link_share", 100 * _pcie(load), 100 * PCIE)
    else:
        return None
    numbers = [
        evidence,
        below("tensor_active", load.mean("tensor_active"), TENSOR),
        above("busy", load.busy, BUSY),
        seen("peers", float(len(case.peers))),
    ]
    sure: Confidence = "medium" if load.detailed else "low"
    return found(load, "communication_bound", sure, numbers, advice=RULE.advice, kind=kind, rate=rate)


def _nvlink(load: Load) -> float:
    return min(load.mean("nvlink_rx") or 0.0, load.mean("nvlink_tx") or 0.0)


def _pcie(load: Load) -> float:
    """Return the share of the link (0–1) that both directions use at least; loading data uses only one."""
    link = load.link
    return 0.0 if not link else min(load.mean("pcie_rx") or 0.0, load.mean("pcie_tx") or 0.0) / link


RULE = DiagnosisRule(
    "communication_bound",
    "feeding",
    "job",
    _judge,
    needs=("nvlink_rx", "nvlink_tx", "pcie_rx", "pcie_tx", "processes"),
    signature=(
        f"All GPUs of one job move {NVLINK / 1e9:.0f} GB/s or more both ways over NVLink, or {100 * PCIE:.0f} "
        f"% of the PCIe link both ways, while their tensor "
        f"cores stay below {TENSOR:.0f} %."
    ),
    blind=(
        "Traffic between machines passes a network card that gpulse cannot assign to a GPU. Overlap of "
        "computing and exchange is not visible."
    ),
    sources=(
        "PyTorch profiler TensorBoard plugin: communication over 10 % of the step",
        "ICSE 2024 study: data exchange, 7.1 % of the issues",
    ),
    advice=("accumulate_gradients", "overlap", "nccl_transport"),
)
