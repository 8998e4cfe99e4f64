"""transfer_bound: copies between host and GPU take the time."""

from __future__ import annotations

from ..rule import DiagnosisRule, above, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..load import Load
    from ..rule import Case

PINNED = 35.0  # per cent of the link: what pinned copies of a third of the time make
PAGEABLE = 2.0e9  # bytes per second: a fifth of what one core copies out of pageable memory
SENT = 0.7e9  # bytes per second to the host, where fresh pages make copies slower and nothing else sends much
STEADY = 0.6  # of the time at more than half of the usual rate
BUSY = 75.0  # per cent of kernel time above which copies overlap with computing
_BURST = 0.30  # of the link that copies out of pageable memory do not exceed
_SATURATED = 85.0  # per cent of all CPUs: then it is the preparation of data


def _judge(case: Case) -> Verdict | None:
    load = case.load
    busy = load.busy
    if busy is None or busy >= BUSY:
        return None
    received, sent = load.mean("pcie_rx"), load.mean("pcie_tx")
    if received is None and sent is None:
        return None
    key = "pcie_rx" if (received or 0.0) >= (sent or 0.0) else "pcie_tx"
    rate = load.mean(key) or 0.0
    link = load.link
    share = None if link is None else 100 * rate / link
    if share is not None and share >= PINNED:
        return _verdict(load, key, rate, share, "pinned", "high")
    least = PAGEABLE if key == "pcie_rx" else SENT
    if rate < least or _fed_by_cpus(load) or not _steady(load, key, rate) or (key == "pcie_tx" and busy >= 30):
        return None
    high = load.high(key) or 0.0
    memory = "pageable" if link is None or high <= _BURST * link else "unknown"
    return _verdict(load, key, rate, share, memory, "high" if memory == "pageable" and rate >= 2 * least else "medium")


def _steady(load: Load, key: str, rate: float) -> bool:
    return load.share_of(key, 0.5 * rate) >= STEADY


def _fed_by_cpus(load: Load) -> bool:
    host, workers = load.host("cpu_percent"), load.workers
    return (host is not None and host >= _SATURATED) or (workers >= 2 and load.cpu_workers >= 0.7 * workers)


def _verdict(load: Load, key: str, rate: float, share: float | None, memory: str, sure: Confidence) -> Verdict:
    limit = PINNED if memory == "pinned" else None
    evidence = [
        above(key, rate, PAGEABLE if key == "pcie_rx" else SENT) if limit is None else seen(key, rate),
        above("link_share", share, limit) if limit is not None else seen("link_share", share),
        below("busy", load.busy, BUSY),
        seen("sm_active", load.mean("sm_active")),
        seen("cpu_main", load.cpu_main),
    ]
    direction = "h2d" if key == "pcie_rx" else "d2h"
    advice: tuple[str, ...] = (
        ("pin_memory", "smaller_copies", "prefetch")
        if direction == "h2d"
        else ("fewer_downloads", "async_copy", "keep_on_gpu")
    )
    if memory == "pinned":
        advice = (
            ("smaller_copies", "prefetch", "keep_on_gpu") if direction == "h2d" else ("fewer_downloads", "keep_on_gpu")
        )
    return found(load, "transfer_bound", sure, evidence, advice=advice, direction=direction, memory=memory, rate=rate)


RULE = DiagnosisRule(
    "transfer_bound",
    "feeding",
    "phase",
    _judge,
    needs=("pcie_rx", "pcie_tx"),
    signature=(
        f"Kernels run less than {BUSY:.0f} % of the time, and one direction of PCIe carries {PINNED:.0f} "
        f"% of the link on average, or steadily more "
        f"than {PAGEABLE / 1e9:g} GB/s (to the host: {SENT / 1e9:g} GB/s) while the CPUs are not saturated by loader workers."
    ),
    blind=(
        "Pageable or pinned is an inference: copies out of pageable memory pass one CPU core and stay "
        "below about 10 GB/s, which slow pinned "
        "copies can too. Copies that overlap with computing do not count."
    ),
    sources=(
        "ICSE 2024 study of low GPU utilization: host-GPU transfer, 27.9 % of the issues",
        "KempnerPulse I/O class (PCIe 1 GB/s, SM below 30 %)",
        "gpulse H200 trace `h2d`: 8 GB/s pageable",
    ),
    advice=("pin_memory", "smaller_copies", "prefetch", "keep_on_gpu"),
)
