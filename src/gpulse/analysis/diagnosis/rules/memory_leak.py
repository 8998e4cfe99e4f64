"""memory_leak: the memory of a process rises steadily; says when the GPU will be full."""

from __future__ import annotations

from itertools import pairwise

from ..rule import DiagnosisRule, Span, Verdict, above, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..window import ProcessSamples

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


def _judge(span: Span) -> Verdict | None:
    if span.seconds < _SHORTEST:
        return None
    times = span.gpu.times
    for track in span.own:
        points = [(times[at], value) for at, value in track.between("memory_used", span.first, span.end)]
        if (verdict := _grows(span, track, points)) is not None:
            return verdict
    if len(span.tracks) > 1 or not span.worked:
        return None
    # a history keeps only the mean memory of a process, a container hides them
    used = zip(times[span.first : span.end], span.values("memory_used"), strict=True)
    return _grows(span, span.main, [(time, value) for time, value in used if value is not None])


def _grows(span: Span, track: ProcessSamples | None, points: Sequence[tuple[float, float]]) -> Verdict | None:
    if len(points) < 6 or points[-1][0] - points[0][0] < _SHORTEST:
        return None
    grown, seconds = points[-1][1] - points[0][1], points[-1][0] - points[0][0]
    if grown < max(_LEAST, 0.002 * points[0][1]):
        return None
    least = max(_STEP, 0.2 * grown / len(points))  # a fifth of even growth per sample
    rises = ((time, later - earlier) for (_, earlier), (time, later) in pairwise(points))
    steps = [(time, size) for time, size in rises if size >= least]
    if len(steps) < RISES:
        return None
    fallen = any(later < earlier - 0.02 * grown for (_, earlier), (_, later) in pairwise(points))
    pause, longest = _pauses(points, steps, span.interval)
    if fallen or longest > EVEN * pause or max(size for _, size in steps) > LARGEST * grown:
        return None
    if _slows(steps) or (_begins(span, track, points) and seconds < _WARM_UP):
        return None
    # from step to step: edges are chance
    rate = sum(size for _, size in steps[1:]) / max(steps[-1][0] - steps[0][0], 1e-9)
    received, sm = span.mean("pcie_rx"), span.mean("sm_active") or 0.0
    if received is not None and received >= _LOADING * rate and rate > 50e6 and sm < 10.0:
        return None
    total, used = span.gpu.last("memory_total"), span.known("memory_used")
    reserved = span.gpu.last("memory_reserved") or 0.0
    free = None if total is None or not used else max(0.0, total - reserved - used[-1])
    evidence = [
        above("memory_growth", rate, _LEAST / seconds),
        above("rising_steps", float(len(steps)), float(RISES)),
        seen("process_memory", points[-1][1]),
    ]
    certain = seconds >= _SURE or (len(steps) >= 2 * RISES and span.worked)
    slow, fast = _range(steps, seconds, rate)
    return RULE.found(
        span,
        "high" if certain else "medium",
        evidence,
        processes=() if track is None else [track],
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


def _begins(span: Span, track: ProcessSamples | None, points: Sequence[tuple[float, float]]) -> bool:
    """Tell whether the growth began with the program, so that it may be its start."""
    age = None if track is None else next(iter(track.known("running_time")), None)
    return age is not None and points[0][0] - span.gpu.times[track.at[0] if track else 0] + age < _YOUNG


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


RULE = DiagnosisRule(
    "memory_leak", "fault", "window", _judge, needs=("processes", "memory_used"),
    advice=("detach_loss", "eval_no_grad", "memory_snapshot"),
    signature=(
        f"The memory of a process rises in {RISES} steps or more at an even pace (no pause longer than {EVEN:g} times "
        f"the usual one, up to the end), never falls, no step brings more than {100 * LARGEST:.0f} % of the growth, and "
        "the bytes do not arrive over PCIe as weights do."
    ),
    blind=(
        "A caching allocator that still grows in the first minutes (longer sequences, first evaluation) looks the same "
        "in a short window; frameworks that allocate everything at the start (JAX, TensorFlow, vLLM) hide leaks inside "
        "their pool."
    ),
    sources=(
        "PyTorch FAQ: memory that is not freed",
        "SageMaker Debugger GPUMemoryIncrease",
        "gpulse H200 trace `leak`",
    ),
)  # fmt: skip
