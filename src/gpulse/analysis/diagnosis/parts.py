"""Where the time of one stretch goes: parts that add up to all of it, from GPU counters joined with what the program did.

The GPU comes first: what its counters count is work. The rest is what it waited for, told apart by the state of the thread that
feeds it, its workers, and the disks, weighted by how idle the GPU was at that very sample.
"""

from __future__ import annotations

from .waits import wait_causes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .load import Load

GAPS = 0.15  # of the time without any kernel from which a thread does something else than launching
FILL = 0.50  # of the chip at work while a kernel runs
PAGEABLE = 4.0e9  # bytes per second that one core copies out of pageable memory while it does nothing else, at least
FRESH = 1.3e9  # the same to the host, where fresh pages make copies slower
PINNED = 0.9  # of the link that pinned copies reach
BURST = 0.30  # of the link that copies out of pageable memory do not exceed
COPIED = 0.5e9  # bytes per second below which copies are not worth a part
_STEADY = 0.6  # of the time at more than half of the usual rate
_COPYING = 1e9  # bytes per second from which utilization counts copies as work
_DRAM, _LEAD = 45.0, 10.0  # per cent of DRAM activity, and points above the tensor cores, that make work memory-bound
_FULL = 60.0  # per cent of utilization that slow copies do not reach
_HEAT = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")


def parts_of(load: Load) -> tuple[dict[str, float], set[str]]:
    """Return the shares (0–1) of the parts of a stretch in which a program works, and which of them are estimates."""
    busy, sm = load.busy, load.mean("sm_active")
    if busy is None:
        return {"unread": 1.0}, set()
    work, guessed = _work(load, busy, sm)
    left = max(0.0, 1.0 - sum(work.values()))
    copy = min(left, copy_share(load))
    small = 0.0 if sm is None or _hides_kernels(load) else min(left - copy, max(0.0, (busy - sm) / 100.0))
    wait = max(0.0, left - copy - small)
    causes = {part: wait * share for part, share in wait_causes(load).items()}
    if launches(load):
        small += causes.pop("thread", 0.0)
    shares = {**work, "copy": copy, "launch": small, **causes}
    _throttle(load, shares)
    return shares, guessed | {"copy", "launch", "throttled", *causes}


def _work(load: Load, busy: float, sm: float | None) -> tuple[dict[str, float], set[str]]:
    if sm is None:  # utilization says that something ran, copies included, not what
        copies = copy_share(load) if busy < _FULL or _pinned(load) else 0.0
        share = max(0.0, busy / 100.0 - copies)
        memory = (load.mean("memory_utilization") or 0.0) >= 60.0 and (load.power_share or 0.0) < 0.85
        part = "memory" if memory else "compute"
        return {part: share}, {part}
    tensor = min(sm, load.mean("tensor_active") or 0.0)
    dram = load.mean("dram_active") or 0.0
    part = "memory" if dram >= _DRAM and dram >= tensor + _LEAD else "compute"
    return {"tensor": tensor / 100.0, part: (sm - tensor) / 100.0}, set()


def _pinned(load: Load) -> bool:
    """Tell whether copies are so fast that they take most of the time by themselves."""
    rate, link = max(load.mean("pcie_rx") or 0.0, load.mean("pcie_tx") or 0.0), load.link
    return link is not None and rate >= BURST * link


def _hides_kernels(load: Load) -> bool:
    """Tell whether copies make utilization say nothing of kernels, and the engine's own counter was not read."""
    rate = max(load.mean("pcie_rx") or 0.0, load.mean("pcie_tx") or 0.0)
    return rate >= _COPYING and load.mean("graphics_active") is None


def copy_share(load: Load) -> float:
    """Return the share of the time (0–1) that copies between host and GPU take, as far as their rate tells."""
    received, sent = load.mean("pcie_rx") or 0.0, load.mean("pcie_tx") or 0.0
    key, rate, slow = ("pcie_rx", received, PAGEABLE) if received >= sent else ("pcie_tx", sent, FRESH)
    if rate < COPIED or load.share_of(key, 0.5 * rate) < _STEADY:
        return 0.0
    link, most = load.link, load.high(key) or 0.0
    if link is not None and (most > BURST * link or rate > 2.5 * slow):
        return min(1.0, rate / (PINNED * link))
    if load.workers >= 1 and load.cpu_workers >= 0.5 * load.workers:
        return min(1.0, rate / (2.5 * slow))  # batches that workers prepared: the copy is a part of the step
    return min(1.0, rate / slow)


def launches(load: Load) -> bool:
    """Tell whether a busy thread launches small kernels without a break rather than doing something else between large ones."""
    fill, busy = load.fill, load.busy or 0.0
    if load.idle_share >= GAPS or busy < 1.0:
        return False
    return fill is not None and fill < FILL


def _throttle(load: Load, shares: dict[str, float]) -> None:
    """Take from the work what slower clocks cost: the share of the time with heat or a power brake, by the loss of clock."""
    share = load.reasons_share(_HEAT) or 0.0
    clock, most = load.mean("clock_sm"), load.gpu.last("clock_sm_max")
    if share < 0.01 or clock is None or not most or clock >= most:
        return
    lost = min(1.0, share) * (1.0 - clock / most)
    for part in ("tensor", "compute", "memory"):
        if part in shares:
            shares["throttled"] = shares.get("throttled", 0.0) + lost * shares[part]
            shares[part] *= 1.0 - lost
