"""transfer_bound: copies between host and GPU take the time."""

from __future__ import annotations

from ..parts import BURST
from ..rule import DiagnosisRule, Span, Verdict, above, facts, seen

LEAST = 0.25  # of the time
_CERTAIN = 0.5  # of the time
# By direction, and whether the memory is pinned.
_ADVICE: dict[tuple[str, bool], tuple[str, ...]] = {
    ("h2d", False): ("pin_memory", "smaller_copies", "prefetch"),
    ("h2d", True): ("smaller_copies", "prefetch", "keep_on_gpu"),
    ("d2h", False): ("fewer_downloads", "async_copy", "keep_on_gpu"),
    ("d2h", True): ("fewer_downloads", "keep_on_gpu"),
}


def _judge(span: Span) -> Verdict | None:
    received, sent = span.mean("pcie_rx") or 0.0, span.mean("pcie_tx") or 0.0
    key, rate = ("pcie_rx", received) if received >= sent else ("pcie_tx", sent)
    link, share = span.link, span.parts.get("copy", 0.0)
    used = None if link is None else 100 * rate / link
    pinned = used is not None and used >= 100 * BURST
    burst = link is not None and (span.high(key) or 0.0) > BURST * link
    memory = "pinned" if pinned else "unknown" if burst else "pageable"
    certain = share >= _CERTAIN and memory != "unknown" and span.end - span.first >= 5
    evidence = [
        above("copy_share", 100 * share, 100 * LEAST),
        seen(key, rate),
        seen("link_share", used),
        *facts(span, "busy", "sm_active", "cpu_main"),
    ]
    direction = "h2d" if key == "pcie_rx" else "d2h"
    advice = _ADVICE[direction, pinned]
    return RULE.found(
        span, "high" if certain else "medium", evidence, advice=advice, direction=direction, memory=memory, rate=rate
    )


RULE = DiagnosisRule(
    "transfer_bound", "feeding", "phase", _judge, part="copy", needs=("pcie_rx", "pcie_tx"),
    advice=("pin_memory", "smaller_copies", "prefetch", "keep_on_gpu"),
    signature=(
        f"Steady copies over PCIe take {100 * LEAST:.0f} % of the time or more in which nothing is computed, and more "
        f"than anything else that the GPU waits for. Copies of more than {100 * BURST:.0f} % of the link come from "
        "pinned memory."
    ),
    blind=(
        "Pageable or pinned is an inference: copies out of pageable memory pass one CPU core and stay below about 10 "
        "GB/s, which slow pinned copies can too. How long they take is estimated from their rate. Copies that overlap "
        "with computing do not count."
    ),
    sources=(
        "ICSE 2024 study of low GPU utilization: host-GPU transfer, 27.9 % of the issues",
        "KempnerPulse I/O class (PCIe 1 GB/s, SM below 30 %)",
        "gpulse H200 trace `h2d`: 8 GB/s pageable",
    ),
)  # fmt: skip
