"""Where the time of one stretch goes: parts that add up to all of it, from GPU counters joined with what the program did.

The GPU comes first: what its counters count is work. The rest is what it waited for, told apart by the state of the thread that
feeds it, its workers, and the disks, weighted by how idle the GPU was at that very sample.
"""

from __future__ import annotations

from ...model.condition import HEAT, POWER_BRAKE
from ...value import Value
from .trace import TRACE_STEP
from .workload import BUSY_SM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .span import Span


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
_SLOWED = HEAT | {POWER_BRAKE}


def parts_of(span: Span) -> tuple[dict[str, float], set[str]]:
    """Return the shares (0–1) of the parts of a stretch in which a program works, and which of them are estimates."""
    busy, sm = span.busy, span.mean("sm_active")
    if busy is None:
        return {"unread": 1.0}, set()
    work, guessed = _work(span, busy, sm)
    left = max(0.0, 1.0 - sum(work.values()))
    copy = min(left, copy_share(span))
    # copies make utilization say nothing of kernels where the engine's own counter was not read
    hidden = _copy_rate(span) >= _COPYING and span.mean("graphics_active") is None
    small = 0.0 if sm is None or hidden else min(left - copy, max(0.0, (busy - sm) / 100.0))
    wait = max(0.0, left - copy - small)
    causes = {part: wait * share for part, share in wait_causes(span).items()}
    if launches(span):
        small += causes.pop("thread", 0.0)
    shares = {**work, "copy": copy, "launch": small, **causes}
    _throttle(span, shares)
    return shares, guessed | {"copy", "launch", "throttled", *causes}


def _work(span: Span, busy: float, sm: float | None) -> tuple[dict[str, float], set[str]]:
    if sm is None:  # utilization says that something ran, copies included, not what
        pinned = (
            span.link is not None and _copy_rate(span) >= BURST * span.link
        )  # so fast that they take most of the time
        copies = copy_share(span) if busy < _FULL or pinned else 0.0
        share = max(0.0, busy / 100.0 - copies)
        memory = (span.mean("memory_utilization") or 0.0) >= 60.0 and (span.power_share or 0.0) < 0.85
        part = "memory" if memory else "compute"
        return {part: share}, {part}
    tensor = min(sm, span.mean("tensor_active") or 0.0)
    dram = span.mean("dram_active") or 0.0
    part = "memory" if dram >= _DRAM and dram >= tensor + _LEAD else "compute"
    return {"tensor": tensor / 100.0, part: (sm - tensor) / 100.0}, set()


def _copy_rate(span: Span) -> float:
    return max(span.mean("pcie_rx") or 0.0, span.mean("pcie_tx") or 0.0)


def copy_share(span: Span) -> float:
    """Return the share of the time (0–1) that copies between host and GPU take, as far as their rate tells."""
    received, sent = span.mean("pcie_rx") or 0.0, span.mean("pcie_tx") or 0.0
    key, rate, slow = ("pcie_rx", received, PAGEABLE) if received >= sent else ("pcie_tx", sent, FRESH)
    if rate < COPIED or span.share_of(key, 0.5 * rate) < _STEADY:
        return 0.0
    link, most = span.link, span.high(key) or 0.0
    if link is not None and (most > BURST * link or rate > 2.5 * slow):
        return min(1.0, rate / (PINNED * link))
    if span.workers >= 1 and span.cpu_workers >= 0.5 * span.workers:
        return min(1.0, rate / (2.5 * slow))  # batches that workers prepared: the copy is a part of the step
    return min(1.0, rate / slow)


def launches(span: Span) -> bool:
    """Tell whether a busy thread launches small kernels without a break rather than doing something else between large ones."""
    fill = span.fill
    return span.idle_share < GAPS and (span.busy or 0.0) >= 1.0 and fill is not None and fill < FILL


def _throttle(span: Span, shares: dict[str, float]) -> None:
    """Take from the work what slower clocks cost: the share of the time with heat or a power brake, by the loss of clock."""
    share = span.reasons_share(_SLOWED) or 0.0
    clock, most = span.mean("clock_sm"), span.gpu.last("clock_sm_max")
    if share < 0.01 or clock is None or not most or clock >= most:
        return
    lost = min(1.0, share) * (1.0 - clock / most)
    for part in ("tensor", "compute", "memory"):
        if part in shares:
            shares["throttled"] = shares.get("throttled", 0.0) + lost * shares[part]
            shares[part] *= 1.0 - lost


READ = 50e6  # bytes per second from storage or network
IOWAIT = 0.30  # cores that wait for disks
WORKER = 0.5  # cores of each worker from which the workers are what the program waits for
_SOME = 0.2  # cores of each worker that show it at work where nothing else explains the wait
_THREADS = 1.3  # cores of a process whose main thread waits: its other threads prepare something
_IDLE = 5.0  # per cent of activity below which a sample shows the GPU waiting
_ALL_BUSY = 95.0  # per cent above which it shows nothing of a wait
_WAITS = 0.7  # of the samples in which a main thread may run while other threads of the program are the limit


def wait_causes(span: Span) -> dict[str, float]:
    """Return what the GPU waits for when it does nothing, as shares that sum to 1: thread, workers, storage, network, outside.

    `unexplained` is the share for which nothing that was read tells.
    """
    samples = _samples(span)
    if not samples:
        return {"unexplained": 1.0}
    thread = _running(samples)
    if (each := span.cpu_workers / span.workers if span.workers >= 1 else 0.0) >= WORKER and each > _own(samples):
        return {"workers": 1.0}  # of two stages that feed the GPU, the one that never rests is the limit
    if (span.cpu_main or 0.0) >= _THREADS and span.states and span.states.get("running", 0.0) < _WAITS:
        return {"workers": 1.0}  # threads of the program, which the main thread waits for
    causes: dict[str, float] = {}
    for one in samples:
        causes[one.cause] = causes.get(one.cause, 0.0) + one.weight
    total = sum(causes.values())
    found = {part: (1.0 - thread) * weight / total for part, weight in causes.items()}
    found["thread"] = found.get("thread", 0.0) + thread
    return {part: share for part, share in found.items() if share > 0}


class _Sample(Value):
    """One sample: how idle the GPU was, whether the thread that feeds it ran, and what else explains a wait."""

    seconds: float
    idle: float
    running: float | None
    cause: str

    @property
    def weight(self) -> float:
        """How well it shows a wait: best where the thread does not run and the GPU does nothing."""
        return self.seconds * (0.02 + self.idle) * (0.05 + 1.0 - (self.running or 0.0))


def _samples(span: Span) -> list[_Sample]:
    main, gpu = span.main, span.gpu
    if main is None:
        return []
    sm, use = gpu.columns["sm_active"], gpu.columns["utilization"]
    waits, network, cores = gpu.host["iowait"], gpu.host["net_rx"], span.cores
    found = []
    told = zip(*(main.values[key] for key in _TELLING), strict=True)
    for at, state, values in zip(main.at, main.states, told, strict=True):
        if not span.first <= at < span.end:
            continue
        activity = use[at] if use[at] is not None else sm[at]
        if activity is None:
            continue  # not read at this sample, as SM activity of a MIG instance that is sampled often
        idle = 1.0 - min(100.0, activity) / 100.0
        # CPU time first: while autograd runs backward in a thread of its own, the main thread waits for a lock
        cpu = values[0]
        own = min(1.0, cpu / 100.0) if cpu is not None else None if state is None else float(state == "running")
        iowait = waits[at]
        waiting = iowait is not None and cores is not None and iowait * cores / 100.0 >= IOWAIT
        cause = _cause(state, values, waiting, network[at] or 0.0)
        found.append(_Sample(gpu.weights[at], idle, own, cause))
    return found


def _running(samples: Sequence[_Sample]) -> float:
    """Return the share of the waits in which the thread itself runs.

    A thread spins while the GPU computes, so where a sample holds both, only what runs beyond that time counts.
    """
    waited = ran = 0.0
    known = [one for one in samples if one.running is not None]
    empty = [one for one in known if one.idle > 1 - _IDLE / 100]
    mixed = [one for one in known if 1 - _ALL_BUSY / 100 <= one.idle <= 1 - _IDLE / 100]
    full = [one for one in known if one.idle < 1 - _ALL_BUSY / 100]
    for group in (empty, mixed or full):
        seconds = sum(one.seconds for one in group)
        if seconds <= 0:
            continue
        idle = sum(one.seconds * one.idle for one in group) / seconds
        running = sum(one.seconds * (one.running or 0.0) for one in group) / seconds
        wait = max(idle, 1e-6)
        waited += seconds * wait
        ran += seconds * wait * min(1.0, max(0.0, (running - (1.0 - idle)) / wait))
    return ran / waited if waited > 0 else 0.0


def _own(samples: Sequence[_Sample]) -> float:
    """Return how much of the time the thread runs, whatever the GPU does."""
    known = [(one.seconds, one.running) for one in samples if one.running is not None]
    seconds = sum(weight for weight, _ in known)
    return sum(weight * running for weight, running in known) / seconds if seconds > 0 else 0.0


# What tells of a process what it waits for.
_TELLING = ("cpu_percent", "tree_cpu_percent", "children", "workers_running", "workers_blocked", "tree_read")


def _cause(state: str | None, values: Sequence[float | None], waiting: bool, received: float) -> str:
    """Return what a thread that does not run waits for at one sample, from its values of `_TELLING`.

    `waiting`: CPUs of the machine wait for disks; `received` are the bytes per second from the network.
    """
    own, tree, workers, running, blocked, reads = values
    if own is None and tree is None and state is None:
        return "unexplained"
    if state == "disk":
        return "storage"
    beside = None if tree is None or own is None else max(0.0, tree - own) / 100.0
    each = None if beside is None or not workers else beside / workers
    if each is not None and each >= WORKER:
        return "workers"
    if (reads or 0.0) >= READ or (waiting and (reads or 0.0) > 1e6) or (blocked and not running):
        return "storage"
    if running or (each is not None and each >= _SOME):
        return "workers"
    if state == "network" or received >= READ:
        return "network"
    if workers is None and tree is None:
        return "unexplained"  # its workers were not read: they may be what it waits for
    if (own or 0.0) / 100.0 >= _THREADS:
        return "workers"
    if state == "running":
        return "thread"  # ready to run without a CPU to run on
    return "thread" if (own or 0.0) / 100.0 >= 0.8 and state is None else "outside"


_PARTLY, _DEEP, _WHOLE = 0.25, 0.7, 0.95  # of a sample without work: at the edge of a pause, in its emptiest, inside
_SHORTEST = 1.2  # sampling intervals that a pause lasts where only samples show it


def pauses(span: Span, least: float) -> list[tuple[float, float]]:
    """Return when the GPU did nothing for `least` seconds or more, as pairs of start and end in seconds since 1970."""
    if span.traced:
        return _runs([(time - TRACE_STEP, time, 1.0 if value < 2.0 else 0.0) for time, value in span.traced], least)
    return _runs(_dips(span), max(least, _SHORTEST * span.interval))


def _dips(span: Span) -> list[tuple[float, float, float]]:
    """Return start and end of each sample, and the share of it (0–1) in which nothing ran, from how far it is below the usual."""
    sm, use = span.values("sm_active"), span.values("utilization")
    detailed = len(span.known("sm_active")) >= len(span.known("utilization"))  # counters may be read less often
    known = sorted(span.known("sm_active" if detailed else "utilization"))
    usual = known[len(known) * 3 // 4] if known else 0.0
    found = []
    for at, (here, busy) in enumerate(zip(sm, use, strict=True)):
        value = here if detailed else busy
        end = span.gpu.times[span.first + at]
        if _is_quiet(here if detailed else None, busy):
            share = 1.0
        else:
            share = 0.0 if value is None or usual <= 0 else max(0.0, 1.0 - value / usual)
        found.append((end - span.weights[at], end, share))
    return found


def _is_quiet(sm: float | None, utilization: float | None) -> bool:
    """Tell whether no kernel ran at a sample; copies may have."""
    if sm is not None:
        return sm < 2 * BUSY_SM
    return utilization is not None and utilization < 2.0


def _runs(slots: Sequence[tuple[float, float, float]], least: float) -> list[tuple[float, float]]:
    """Return the stretches of slots that are empty, their first and last perhaps only in part, of at least `least` seconds."""
    found: list[tuple[float, float]] = []
    start: int | None = None
    for at in range(len(slots) + 1):
        dips = at < len(slots) and slots[at][2] >= _PARTLY
        whole = dips and slots[at][2] >= _WHOLE
        if dips and start is None:
            start = at
        elif start is not None and not whole:
            last = at if dips else at - 1  # the last slot of a pause may be empty in part only
            run = slots[start : last + 1]
            length = sum((end - begin) * share for begin, end, share in run)
            if length >= least and max(share for _, _, share in run) >= _DEEP:
                begin = run[0][1] - (run[0][1] - run[0][0]) * run[0][2]
                found.append((begin, begin + length))
            start = None
    return found
