"""stalls: work stops at intervals, for a checkpoint, an evaluation or logging."""

from __future__ import annotations

from itertools import pairwise

from ..rule import DiagnosisRule, above, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Verdict
    from ..load import Load
    from ..rule import Case

GAP = 0.8  # seconds without any work
LOST = 0.05  # of the time
MOST = 0.70  # of the time: beyond, the GPU is starved rather than interrupted
WORKING = 50.0  # per cent of kernel time between the gaps
STEADY = 80.0  # per cent of kernel time around a single pause that nothing else explains
STRETCH = 1.5  # seconds of work between two gaps
WRITE = 20e6  # bytes per second


def _judge(case: Case) -> Verdict | None:
    load = case.load
    gaps = stall_gaps(load)
    weights = load.gpu.weights
    lost = sum(sum(weights[first:end]) for first, end in gaps)
    share = lost / load.seconds if load.seconds > 0 else 0.0
    if not gaps or not LOST <= share <= MOST or _between(load, gaps) < WORKING:
        return None
    stretch = (load.seconds - lost) / max(1, len(gaps))
    if stretch < max(STRETCH, 2 * load.interval):
        return None
    inside, outside = _rates(load, gaps)
    writes = inside >= WRITE and inside >= 2 * outside
    if len(gaps) < 2 and not writes and _between(load, gaps) < STEADY:
        return None
    if not writes and _prepares(load, gaps):
        return None
    return _verdict(load, gaps, share, inside if writes else None)


def stall_gaps(load: Load) -> list[tuple[int, int]]:
    """Return the pauses that count, as pairs of first place and place after the last."""
    return load.gaps(max(GAP, 1.5 * load.interval))


def _verdict(load: Load, gaps: list[tuple[int, int]], share: float, written: float | None) -> Verdict:
    weights, times = load.gpu.weights, load.gpu.times
    lengths = sorted(sum(weights[first:end]) for first, end in gaps)
    starts = [times[first] for first, _ in gaps]
    periods = sorted(later - earlier for earlier, later in pairwise(starts))
    period = periods[len(periods) // 2] if periods else None
    evidence = [
        above("gap_share", 100 * share, 100 * LOST),
        above("gap_seconds", lengths[len(lengths) // 2], GAP),
        seen("gap_count", float(len(gaps))),
        seen("period", period),
        above("write_rate", written, WRITE) if written is not None else None,
    ]
    kind = "checkpoint" if written is not None else "pause"
    sure: Confidence = "low" if len(gaps) < 2 else "high" if written is not None else "medium"
    advice = ("async_checkpoint", "local_checkpoint", "checkpoint_less") if written is not None else RULE.advice
    return found(load, "stalls", sure, evidence, advice=advice, period=period, kind=kind, lost=share)


def _between(load: Load, gaps: list[tuple[int, int]]) -> float:
    """Return the busy share of the time outside the gaps."""
    outside = set(range(load.first, load.end)).difference(*(range(*gap) for gap in gaps))
    best = 0.0
    for key in ("sm_active", "utilization"):
        column = load.gpu.columns[key]
        known = [(value, load.gpu.weights[at]) for at in outside if (value := column[at]) is not None]
        total = sum(weight for _, weight in known)
        best = max(best, sum(value * weight for value, weight in known) / total if total > 0 else 0.0)
    return best


def _rates(load: Load, gaps: list[tuple[int, int]]) -> tuple[float, float]:
    """Return how fast the program, or else the machine, writes within the gaps and outside them."""
    inside = set().union(*(range(first, min(end + 1, load.end)) for first, end in gaps))
    sums = [0.0, 0.0]
    times = [0.0, 0.0]
    own = _writes(load)
    for at in range(load.first, load.end):
        place = 0 if at in inside else 1
        sums[place] += own.get(at, 0.0) * load.gpu.weights[at]
        times[place] += load.gpu.weights[at]
    rates = [area / seconds if seconds > 0 else 0.0 for area, seconds in zip(sums, times, strict=True)]
    return rates[0], rates[1]


def _writes(load: Load) -> dict[int, float]:
    main = load.main
    disk = load.gpu.host["disk_write"]
    own = [] if main is None else main.known("tree_write")
    if own and max(own) < 1e6:
        return {}  # what the machine writes is not the program's
    rates = {at: disk[at] or 0.0 for at in range(load.first, load.end)}
    if main is not None:
        for at, value in zip(main.at, main.values["tree_write"], strict=True):
            if value is not None and at in rates:
                rates[at] = max(rates[at], value)
    return rates


def _prepares(load: Load, gaps: list[tuple[int, int]]) -> bool:
    """Tell whether loader workers are busy all the time: then the pauses are waits for data."""
    return load.workers >= 1 and load.cpu_workers >= 0.7 * load.workers


RULE = DiagnosisRule(
    "stalls",
    "feeding",
    "phase",
    _judge,
    needs=("utilization",),
    signature=(
        f"Pauses of {GAP:g} s or more without any kernel or copy take {100 * LOST:.0f} to {100 * MOST:.0f} "
        f"% of the time, at least twice or with writes to "
        f"storage of {WRITE / 1e6:.0f} MB/s, while the stretches between them last {STRETCH:g} s or more "
        f"and keep the GPU {WORKING:.0f} % busy."
    ),
    blind=(
        "Pauses shorter than two samples are not seen. Without writes in the pauses, evaluation on the CPU, logging, data loading between "
        "epochs and waits for other ranks look the same."
    ),
    sources=(
        "ICSE 2024 study: model checkpointing, 16.4 % of the issues; one job lost 96 s of every 168 s",
        "SageMaker Debugger StepOutlier",
    ),
    advice=("async_checkpoint", "evaluate_less", "log_async"),
)
