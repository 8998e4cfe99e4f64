"""memory_leak: the memory of a process rises steadily; says when the GPU will be full."""

from __future__ import annotations

from itertools import pairwise

from ..load import holder_of
from ..rule import DiagnosisRule, above, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....model.verdict import Confidence, Verdict
    from ..rule import Case
    from ..window import ProcessTrack

RISES = 4  # steps by which memory must rise
EVEN = 2.5  # times the usual pause between two steps that no pause may exceed, the one since the last step included
LARGEST = 0.5  # of the growth that a single step may bring
_STEP = 1 << 20  # bytes; smaller changes are noise
_LEAST = 96 << 20  # bytes of growth below which nothing is said
_SHORTEST = 6.0  # seconds of samples
_LOADING = 0.4  # of the growth arriving over PCIe: weights are being loaded
_WARM_UP = 9.5  # seconds of growth that a start may bring
_YOUNG = 20.0  # seconds of running time in which a program is starting
_SLOWING = 0.4  # of the growth of the first half that the second half must bring
_SURE = 60.0  # seconds of steady growth


def _judge(case: Case) -> Verdict | None:
    load = case.load
    if load.seconds < _SHORTEST:
        return None
    for track in load.own:
        if (verdict := _grows(case, track, _points(case, track))) is not None:
            return verdict
    if (
        len(load.tracks) <= 1 and case.worked
    ):  # a history keeps only the mean memory of a process, a container hides them
        return _grows(case, load.main, _used(case))
    return None


def _used(case: Case) -> list[tuple[float, float]]:
    times = case.gpu.times[case.load.first : case.load.end]
    return [(time, used) for time, used in zip(times, case.load.values("memory_used"), strict=True) if used is not None]


def _points(case: Case, track: ProcessTrack) -> list[tuple[float, float]]:
    first, end = case.load.first, case.load.end
    return [
        (case.gpu.times[at], value)
        for at, value in zip(track.at, track.values["memory_used"], strict=True)
        if value is not None and first <= at < end
    ]


def _grows(case: Case, track: ProcessTrack | None, points: Sequence[tuple[float, float]]) -> Verdict | None:
    if len(points) < 6 or points[-1][0] - points[0][0] < _SHORTEST:
        return None
    grown, seconds = points[-1][1] - points[0][1], points[-1][0] - points[0][0]
    steps = _steps(points, max(_STEP, 0.2 * grown / len(points)))  # a fifth of even growth per sample
    if grown < max(_LEAST, 0.002 * points[0][1]) or len(steps) < RISES:
        return None
    fallen = any(later < earlier - 0.02 * grown for (_, earlier), (_, later) in pairwise(points))
    pause, longest = _pauses(points, steps, case.load.interval)
    if fallen or longest > EVEN * pause or max(size for _, size in steps) > LARGEST * grown:
        return None
    if _slows(steps) or (_begins(case, track, points) and seconds < _WARM_UP):
        return None
    rate = sum(size for _, size in steps[1:]) / max(
        steps[-1][0] - steps[0][0], 1e-9
    )  # from step to step: edges are chance
    if _is_loading(case, rate):
        return None
    free = _free(case)
    evidence = [
        above("memory_growth", rate, _LEAST / seconds),
        above("rising_steps", float(len(steps)), float(RISES)),
        seen("process_memory", points[-1][1]),
    ]
    confidence: Confidence = "high" if seconds >= _SURE or (len(steps) >= 2 * RISES and case.worked) else "medium"
    slow, fast = _range(steps, seconds, rate)
    return found(
        case.load,
        "memory_leak",
        confidence,
        evidence,
        advice=RULE.advice,
        processes=() if track is None else [holder_of(track)],
        rate=rate,
        eta=None if free is None else (free / fast, free / slow),
        held=points[-1][1],
        grown=grown,
    )


def _slows(steps: Sequence[tuple[float, float]]) -> bool:
    """Tell whether the second half of the time brings much less growth than the first: a cache fills up."""
    middle = steps[0][0] + (steps[-1][0] - steps[0][0]) / 2
    first = sum(size for time, size in steps[1:] if time <= middle)
    second = sum(size for time, size in steps[1:] if time > middle)
    return second < _SLOWING * first


def _begins(case: Case, track: ProcessTrack | None, points: Sequence[tuple[float, float]]) -> bool:
    """Tell whether the growth began with the program, so that it may be its start."""
    age = None if track is None else next((one for one in track.known("running_time")), None)
    return age is not None and points[0][0] - case.gpu.times[track.at[0] if track else 0] + age < _YOUNG


def _steps(points: Sequence[tuple[float, float]], least: float) -> list[tuple[float, float]]:
    """Return when memory rose by at least so much, and by how much."""
    return [(time, later - earlier) for (_, earlier), (time, later) in pairwise(points) if later - earlier >= least]


def _pauses(
    points: Sequence[tuple[float, float]], steps: Sequence[tuple[float, float]], interval: float
) -> tuple[float, float]:
    """Return the usual and the longest time from step to step, the time before the first and after the last included."""
    times = [points[0][0], *(time for time, _ in steps), points[-1][0]]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    usual = sorted(pauses[1:-1])[len(pauses[1:-1]) // 2]
    return max(usual, 2 * interval), max(pauses)


def _range(steps: Sequence[tuple[float, float]], seconds: float, rate: float) -> tuple[float, float]:
    """Return the slowest and fastest growth to expect: that of the slower and of the faster half of the time."""
    middle = steps[0][0] + (steps[-1][0] - steps[0][0]) / 2
    first = sum(size for time, size in steps if time <= middle)
    halves = sorted((2 * first / seconds, 2 * (sum(size for _, size in steps) - first) / seconds))
    return max(0.5 * rate, min(halves[0], 0.9 * rate)), min(2.0 * rate, max(halves[1], 1.1 * rate))


def _is_loading(case: Case, rate: float) -> bool:
    received, sm = case.load.mean("pcie_rx"), case.load.mean("sm_active")
    return received is not None and received >= _LOADING * rate and rate > 50e6 and (sm or 0.0) < 10.0


def _free(case: Case) -> float | None:
    total, used = case.gpu.last("memory_total"), case.load.values("memory_used")
    last = next((value for value in reversed(used) if value is not None), None)
    if total is None or last is None:
        return None
    return max(0.0, total - (case.gpu.last("memory_reserved") or 0.0) - last)


RULE = DiagnosisRule(
    "memory_leak",
    "fault",
    "window",
    _judge,
    needs=("processes", "memory_used"),
    signature=(
        f"The memory of a process rises in {RISES} steps or more at an even pace (no pause longer than "
        f"{EVEN:g} times the usual one, up to the "
        f"end), never falls, no step brings more than {100 * LARGEST:.0f} % of the growth, and the bytes "
        f"do not arrive over PCIe as weights do."
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
