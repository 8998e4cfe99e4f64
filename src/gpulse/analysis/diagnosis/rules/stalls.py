"""stalls: the program stops the GPU again and again: checkpoints, evaluation on the CPU, logging."""

from __future__ import annotations

from itertools import pairwise

from ..load import Load
from ..parts import pauses, wait_causes
from ..rule import DiagnosisRule, above, found, seen
from ..window import TRACE_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....model.verdict import Confidence, Verdict
    from ..rule import Case

GAP = 0.8  # seconds without any work
LOST = 0.05  # of the time
MOST = 0.70  # of the time: beyond, the GPU is starved rather than interrupted
WORKING = 50.0  # per cent of kernel time between the gaps
STRETCH = 1.5  # seconds of work between two gaps
WRITE = 20e6  # bytes per second


def _judge(case: Case) -> Verdict | None:
    load = case.load
    gaps = stall_gaps(load)
    lost = sum(end - start for start, end in gaps)
    share = lost / load.seconds if load.seconds > 0 else 0.0
    if not gaps or not LOST <= share <= MOST or _between(load, gaps) < WORKING:
        return None
    if (load.seconds - lost) / len(gaps) < STRETCH:
        return None
    inside, outside = _write_rates(load, gaps)
    writes = inside >= WRITE and inside >= 2 * outside
    if len(gaps) < 2 and not writes:
        return None
    if not writes and _prepares(load):
        return None
    return _verdict(load, gaps, share, inside if writes else None)


def stall_gaps(load: Load) -> list[tuple[float, float]]:
    """Return the pauses between work, as pairs of start and end in seconds since 1970."""
    edge = 0.5 * load.interval + TRACE_STEP
    first, last = load.start_time + edge, load.end_time - edge
    return [(start, end) for start, end in pauses(load, GAP) if start > first and end < last]


def _verdict(load: Load, gaps: list[tuple[float, float]], share: float, written: float | None) -> Verdict:
    lengths = sorted(end - start for start, end in gaps)
    periods = sorted(later - earlier for (earlier, _), (later, _) in pairwise(gaps))
    period = periods[len(periods) // 2] if periods else None
    cause = "checkpoint" if written is not None else _cause(load, gaps)
    evidence = [
        above("gap_share", 100 * share, 100 * LOST),
        above("gap_seconds", lengths[len(lengths) // 2], GAP),
        seen("gap_count", float(len(gaps))),
        seen("period", period),
        above("write_rate", written, WRITE) if written is not None else None,
    ]
    confidence: Confidence = "low" if len(gaps) < 2 else "high" if written is not None else "medium"
    advice = ("async_checkpoint", "local_checkpoint", "checkpoint_less") if written is not None else RULE.advice
    kind = "checkpoint" if written is not None else "pause"
    return found(
        load, "stalls", confidence, evidence, advice=advice, period=period, kind=kind, lost=share, cause=cause,
        length=lengths[len(lengths) // 2],
    )  # fmt: skip


def _inside(load: Load, gaps: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of the samples whose time lies in a pause for the most part."""
    times, weights = load.gpu.times, load.gpu.weights
    found_places = []
    for at in range(load.first, load.end):
        start, end = times[at] - weights[at], times[at]
        shared = sum(max(0.0, min(end, last) - max(start, first)) for first, last in gaps)
        if shared >= 0.5 * (end - start) > 0:
            found_places.append(at)
    return found_places


def _cause(load: Load, gaps: Sequence[tuple[float, float]]) -> str:
    """Return the part of a budget that the pauses are: what the thread did during them."""
    causes: dict[str, float] = {}
    for at in _inside(load, gaps):
        for part, share in wait_causes(Load(load.gpu, at, at + 1, load.active)).items():
            causes[part] = causes.get(part, 0.0) + share * load.gpu.weights[at]
    return max(causes, key=lambda part: causes[part], default="unexplained")


def _between(load: Load, gaps: Sequence[tuple[float, float]]) -> float:
    """Return the busy share of the time outside the gaps, in per cent."""
    outside = load.seconds - sum(end - start for start, end in gaps)
    worked = max(load.mean("sm_active") or 0.0, load.mean("utilization") or 0.0) * load.seconds
    return min(100.0, worked / outside) if outside > 0 else 0.0


def _write_rates(load: Load, gaps: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return how fast the program, or else the machine, writes within the gaps and outside them."""
    near = set(_inside(load, gaps))
    near |= {at + 1 for at in near if at + 1 < load.end}  # what was written counts when it is read
    sums, times = [0.0, 0.0], [0.0, 0.0]
    own = _writes(load)
    for at in range(load.first, load.end):
        place = 0 if at in near else 1
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


def _prepares(load: Load) -> bool:
    """Tell whether loader workers are busy all the time: then the pauses are waits for data."""
    return load.workers >= 1 and load.cpu_workers >= 0.7 * load.workers


RULE = DiagnosisRule(
    "stalls",
    "feeding",
    "phase",
    _judge,
    part="checkpoint",
    needs=("utilization_trace, or utilization every second",),
    signature=(
        f"Pauses of {GAP:g} s or more without any kernel or copy take {100 * LOST:.0f} to {100 * MOST:.0f} "
        f"% of the time, at least twice or with writes to "
        f"storage of {WRITE / 1e6:.0f} MB/s, while the stretches between them last {STRETCH:g} s or more "
        f"and keep the GPU {WORKING:.0f} % busy."
    ),
    blind=(
        "Without the driver's own samples, pauses shorter than the sampling interval are not seen. Without writes in the pauses, "
        "evaluation on the CPU, logging, data loading between epochs and waits for other ranks look alike."
    ),
    sources=(
        "ICSE 2024 study: model checkpointing, 16.4 % of the issues; one job lost 96 s of every 168 s",
        "SageMaker Debugger StepOutlier",
    ),
    advice=("async_checkpoint", "evaluate_less", "log_async"),
)
