"""memory_leak: the memory of a process rises steadily; says when the GPU will be full."""

from __future__ import annotations

import itertools

from ..load import holder_of
from ..rule import Rule, above, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....model.verdict import Confidence, Verdict
    from ..rule import Case
    from ..window import Track

BINS = 8  # parts of the workload whose peaks are compared
RISING = 6  # of the 7 steps between them that must rise
_LEAST = 96 << 20  # bytes of growth below which nothing is said
_SHORTEST = 6.0  # seconds of samples
_LOADING = 0.4  # of the growth arriving over PCIe: weights are being loaded
_SURE = 60.0  # seconds of steady growth


def _judge(case: Case) -> Verdict | None:
    load = case.load
    if load.seconds < _SHORTEST:
        return None
    for track in load.tracks:
        points = _points(case, track)
        if (verdict := _grows(case, track, points)) is not None:
            return verdict
    return None


def _points(case: Case, track: Track) -> list[tuple[float, float]]:
    first, end = case.load.first, case.load.end
    return [
        (case.gpu.times[at], value)
        for at, value in zip(track.at, track.values["memory_used"], strict=True)
        if value is not None and first <= at < end
    ]


def _grows(case: Case, track: Track, points: Sequence[tuple[float, float]]) -> Verdict | None:
    if len(points) < 6 or points[-1][0] - points[0][0] < _SHORTEST:
        return None
    peaks = _peaks(points)
    rises = [later - earlier for earlier, later in itertools.pairwise(peaks)]
    grown = points[-1][1] - points[0][1]
    steady = sum(rise > 0 for rise in rises) >= min(RISING, len(rises)) and min(rises) >= -0.02 * grown
    if grown < _LEAST or not steady or max(rises) > 0.5 * grown or min(rises[-2:]) <= 0:
        return None
    seconds = points[-1][0] - points[0][0]
    rate = grown / seconds
    if _is_loading(case, rate) or grown < 0.002 * points[0][1]:
        return None
    slow, fast = _range(rises, seconds / len(rises), rate)
    free = _free(case)
    evidence = [
        above("memory_growth", rate, _LEAST / seconds),
        above("rising_intervals", float(sum(rise > 0 for rise in rises)), float(min(RISING, len(rises)))),
        seen("process_memory", points[-1][1]),
    ]
    confidence: Confidence = "high" if seconds >= _SURE or (_even(rises) and case.worked) else "medium"
    return found(
        case.load,
        "memory_leak",
        confidence,
        evidence,
        advice=RULE.advice,
        processes=[holder_of(track)],
        rate=rate,
        eta=None if free is None else (free / fast, free / slow),
        held=points[-1][1],
    )


def _peaks(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return the highest value in each of eight equal parts of the time; a part without a sample is left out."""
    start, length = points[0][0], (points[-1][0] - points[0][0]) / BINS
    peaks: dict[int, float] = {}
    for time, value in points:
        part = min(BINS - 1, int((time - start) / length))
        peaks[part] = max(value, peaks.get(part, 0.0))
    return [peaks[part] for part in sorted(peaks)]


def _even(rises: Sequence[float]) -> bool:
    mean = sum(rises) / len(rises)
    return all(0.4 * mean <= rise <= 1.8 * mean for rise in rises)


def _range(rises: Sequence[float], seconds: float, rate: float) -> tuple[float, float]:
    """Return the slowest and fastest growth to expect, from the middle of the steps and the mean."""
    ordered = sorted(rise / seconds for rise in rises)
    low, high = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    return max(0.5 * rate, min(low, 0.9 * rate)), max(high, 1.1 * rate)


def _is_loading(case: Case, rate: float) -> bool:
    received, sm = case.load.mean("pcie_rx"), case.load.mean("sm_active")
    return received is not None and received >= _LOADING * rate and rate > 50e6 and (sm or 0.0) < 10.0


def _free(case: Case) -> float | None:
    total, used = case.gpu.last("memory_total"), case.load.values("memory_used")
    last = next((value for value in reversed(used) if value is not None), None)
    if total is None or last is None:
        return None
    return max(0.0, total - (case.gpu.last("memory_reserved") or 0.0) - last)


RULE = Rule(
    "memory_leak",
    "fault",
    "window",
    _judge,
    needs=("processes", "memory_used"),
    signature=(
        f"The peaks of a process's memory rise in at least {RISING} of the {BINS - 1} steps between {BINS} "
        f"equal parts of the workload, still "
        "in the last two, without a single large jump, and the bytes do not arrive over PCIe as weights do."
    ),
    blind=(
        "A caching allocator that still grows in the first minutes (longer sequences, first evaluation) looks the same in a short window; "
        "frameworks that allocate everything at the start (JAX, TensorFlow, vLLM) hide leaks inside their pool."
    ),
    sources=(
        "PyTorch FAQ: memory that is not freed",
        "SageMaker Debugger GPUMemoryIncrease",
        "gpulse H200 trace `leak`",
    ),
    advice=("detach_loss", "eval_no_grad", "memory_snapshot"),
)
