"""stalls: the program stops the GPU again and again: checkpoints, evaluation on the CPU, logging."""

from __future__ import annotations

from itertools import pairwise

from ..parts import pauses, wait_causes
from ..rule import DiagnosisRule, Span, Verdict, above, median, seen
from ..trace import TRACE_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = 0.8  # seconds without any work
LOST = 0.05  # of the time
MOST = 0.70  # of the time: beyond, the GPU is starved rather than interrupted
WORKING = 50.0  # per cent of kernel time between the gaps
STRETCH = 1.5  # seconds of work between two gaps
WRITE = 20e6  # bytes per second


def _judge(span: Span) -> Verdict | None:
    gaps = stall_gaps(span)
    lost = sum(end - start for start, end in gaps)
    share = lost / span.seconds if span.seconds > 0 else 0.0
    if not gaps or not LOST <= share <= MOST or _between(span, gaps) < WORKING:
        return None
    if (span.seconds - lost) / len(gaps) < STRETCH:
        return None
    inside, outside = _write_rates(span, gaps)
    writes = inside >= WRITE and inside >= 2 * outside
    prepares = (
        span.workers >= 1 and span.cpu_workers >= 0.7 * span.workers
    )  # busy all the time: the pauses wait for data
    if not writes and (len(gaps) < 2 or prepares):
        return None
    return _verdict(span, gaps, share, inside if writes else None)


def stall_gaps(span: Span) -> list[tuple[float, float]]:
    """Return the pauses between work, as pairs of start and end in seconds since 1970."""
    edge = 0.5 * span.interval + TRACE_STEP
    first, last = span.start_time + edge, span.end_time - edge
    return [(start, end) for start, end in pauses(span, GAP) if start > first and end < last]


def _verdict(span: Span, gaps: list[tuple[float, float]], share: float, written: float | None) -> Verdict:
    length = median([end - start for start, end in gaps])
    period = median([later - earlier for (earlier, _), (later, _) in pairwise(gaps)])
    cause = _cause(span, gaps) if written is None else "checkpoint"
    evidence = [
        above("gap_share", 100 * share, 100 * LOST),
        above("gap_seconds", length, GAP),
        seen("gap_count", float(len(gaps))),
        seen("period", period),
        above("write_rate", written, WRITE) if written is not None else None,
    ]
    kind = "pause" if written is None else "checkpoint"
    advice = RULE.advice if written is None else ("async_checkpoint", "local_checkpoint", "checkpoint_less")
    return RULE.found(
        span, "low" if len(gaps) < 2 else "medium" if written is None else "high", evidence, advice=advice,
        period=period, kind=kind, lost=share, cause=cause, length=length,
    )  # fmt: skip


def _inside(span: Span, gaps: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of the samples whose time lies in a pause for the most part."""
    times, weights = span.gpu.times, span.gpu.weights
    places = []
    for at in range(span.first, span.end):
        start, end = times[at] - weights[at], times[at]
        shared = sum(max(0.0, min(end, last) - max(start, first)) for first, last in gaps)
        if shared >= 0.5 * (end - start) > 0:
            places.append(at)
    return places


def _cause(span: Span, gaps: Sequence[tuple[float, float]]) -> str:
    """Return the part of a budget that the pauses are: what the thread did during them."""
    causes: dict[str, float] = {}
    for at in _inside(span, gaps):
        for part, share in wait_causes(Span(span.gpu, at, at + 1, span.active)).items():
            causes[part] = causes.get(part, 0.0) + share * span.gpu.weights[at]
    return max(causes, key=lambda part: causes[part], default="unexplained")


def _between(span: Span, gaps: Sequence[tuple[float, float]]) -> float:
    """Return the busy share of the time outside the gaps, in percent."""
    outside = span.seconds - sum(end - start for start, end in gaps)
    worked = max(span.mean("sm_active") or 0.0, span.mean("utilization") or 0.0) * span.seconds
    return min(100.0, worked / outside) if outside > 0 else 0.0


def _write_rates(span: Span, gaps: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return how fast the program, or else the machine, writes within the gaps and outside them."""
    near = set(_inside(span, gaps))
    near |= {at + 1 for at in near if at + 1 < span.end}  # what was written counts when it is read
    sums, times = [0.0, 0.0], [0.0, 0.0]
    own = _writes(span)
    for at in range(span.first, span.end):
        place = 0 if at in near else 1
        sums[place] += own.get(at, 0.0) * span.gpu.weights[at]
        times[place] += span.gpu.weights[at]
    inside, outside = (area / seconds if seconds > 0 else 0.0 for area, seconds in zip(sums, times, strict=True))
    return inside, outside


def _writes(span: Span) -> dict[int, float]:
    main = span.main
    disk = span.gpu.host["disk_write"]
    own = [] if main is None else main.known("tree_write")
    if own and max(own) < 1e6:
        return {}  # what the machine writes is not the program's
    rates = {at: disk[at] or 0.0 for at in range(span.first, span.end)}
    for at, value in () if main is None else main.between("tree_write", span.first, span.end):
        rates[at] = max(rates[at], value)
    return rates


RULE = DiagnosisRule(
    "stalls", "feeding", "phase", _judge, part="checkpoint", needs=("utilization_trace, or utilization every second",),
    advice=("async_checkpoint", "evaluate_less", "log_async"),
    signature=(
        f"Pauses of {GAP:g} s or more without any kernel or copy take {100 * LOST:.0f} to {100 * MOST:.0f} % of the "
        f"time, at least twice or with writes to storage of {WRITE / 1e6:.0f} MB/s, while the stretches between them "
        f"last {STRETCH:g} s or more and keep the GPU {WORKING:.0f} % busy."
    ),
    blind=(
        "Without the driver's own samples, pauses shorter than the sampling interval are not seen. Without writes in "
        "the pauses, evaluation on the CPU, logging, data loading between epochs and waits for other ranks look alike."
    ),
    sources=(
        "ICSE 2024 study: model checkpointing, 16.4 % of the issues; one job lost 96 s of every 168 s",
        "SageMaker Debugger StepOutlier",
    ),
)  # fmt: skip
