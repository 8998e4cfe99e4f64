"""The workload inside a window: the time in which processes hold the GPU, without start-up and end, cut into phases.

Averages over a whole window mix what a program does with the seconds in which it imports, allocates, compiles or has already
ended. Everything here returns places of samples; nothing is judged.
"""

from __future__ import annotations

from itertools import pairwise
from operator import mul

from ..readings import HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .window import GpuWindow, ProcessKey

BUSY_SM = 0.5  # per cent of SM activity from which a sample shows work
_LEAST_SM = 0.08  # per cent; less is not told from nothing however rare samples are
BUSY_UTILIZATION = 2.0  # per cent of utilization from which a sample shows work
BUSY_LINK = 0.4e9  # bytes per second over PCIe from which a sample shows work
_BRIDGE = 3.0  # seconds without a holder that do not end a workload
_YOUNG = 30.0  # seconds of running time at which a process may still be starting
_LONG = 2.0  # seconds without work before or after the rest that count as start-up or end
_AHEAD = 2.0  # seconds looked at to tell steady work from a first kernel
_WARM_UP = 1.5  # seconds after the first steady work in which clocks and caches settle
_EDGE = 0.6  # of the usual activity below which the first or last sample is not all work
_SHORTEST = 3.0  # seconds left by trimming
_BRIEF = 1.0  # the same after a start that was seen
_CHUNK = 4.0  # seconds of the pieces that phases are made of
_APART = 25.0  # points of activity by which two phases differ
_FEATURES = ("utilization", "sm_active", "tensor_active", "dram_active", "fp32_active")


def weighted(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """Return the mean of the values that are there, weighted by time."""
    missing = values.count(None)
    if missing == len(values):
        return None
    if missing:
        known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
        total, area = sum(weight for _, weight in known), sum(value * weight for value, weight in known)
    else:
        total, area = sum(weights), sum(map(mul, values, weights))
    return area / total if total > 0 else 0.0


def working(gpu: GpuWindow) -> list[bool]:
    """Tell for each sample whether the GPU did anything: kernels or copies."""
    # a counter averages over the time since the sample before, so a burst is smaller in it the rarer the samples are
    least_sm = min(BUSY_SM, max(_LEAST_SM, 0.1 / gpu.interval))
    signals = {"sm_active": least_sm, "utilization": BUSY_UTILIZATION, "pcie_rx": BUSY_LINK, "pcie_tx": BUSY_LINK}
    found = [False] * len(gpu)
    for key, least in signals.items():
        for at, value in enumerate(gpu.columns[key]):
            if value is not None and value >= least:
                found[at] = True
    return found


def held_spans(gpu: GpuWindow) -> list[tuple[int, int]]:
    """Return the stretches in which the GPU was held by the same programs, as pairs of first place and place after the last."""
    held = _held(gpu)
    spans: list[tuple[int, int]] = []
    holders: set[ProcessKey] = set()
    now: set[ProcessKey] = set()
    before: Sequence[ProcessKey | None] = ()
    bridge = max(_BRIDGE, 2.5 * gpu.interval)
    for at, holds in enumerate(held):
        if not holds:
            continue
        listed = gpu.processes[at]
        keys = () if listed is None else listed.keys
        if keys != before:  # seldom
            before, now = keys, {key for key in keys if key is not None}
        near = bool(spans) and gpu.times[at] - gpu.times[spans[-1][1] - 1] <= bridge
        if near and not (now and holders and now.isdisjoint(holders)):
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
            holders = set()
        holders = now or holders
    return spans


def _held(gpu: GpuWindow) -> list[bool]:
    """Tell for each sample whether the GPU was held: by its processes, or by its memory where lists of processes have holes."""
    listed = [bool(processes) for processes in gpu.processes]
    used = [value is not None and value >= HIDDEN for value in gpu.columns["memory_used"]]
    both = sum(a and b for a, b in zip(listed, used, strict=True))
    if any(listed) and 2 * both >= sum(used):
        return listed
    busy = working(gpu)
    return [a or b or c for a, b, c in zip(listed, used, busy, strict=True)]


def trim(gpu: GpuWindow, first: int, end: int, active: Sequence[bool]) -> tuple[int, int]:
    """Return a held stretch without start-up and end; unchanged when the GPU never worked in it."""
    places = [at for at in range(first, end) if active[at]]
    if not places:
        return settled(gpu, first, end)
    head, tail = places[0], places[-1]
    inner = max((gpu.times[later] - gpu.times[earlier] for earlier, later in pairwise(places)), default=0.0)
    if starts(gpu, first):
        head = _first_kernel(gpu, _steady(gpu, head, tail + 1), tail)
        head = _later(gpu, head, min(_WARM_UP, 0.1 * (gpu.times[tail] - gpu.times[head])), tail)
    elif gpu.times[head] - gpu.times[first] <= max(_LONG, 2.0 * inner):
        head = first
    if end == len(gpu) and gpu.times[end - 1] - gpu.times[tail] <= max(_LONG, 2.0 * inner):
        tail = end - 1
    if tail - head >= 3:  # samples at the edges hold some of the time before and after
        usual = _level(gpu, head + 1, tail)
        head += head > first and _level(gpu, head, head + 1) < _EDGE * usual
        tail -= (tail < len(gpu) - 1 or _is_freed(gpu, tail)) and _level(gpu, tail, tail + 1) < _EDGE * usual
    return (head, max(head + 1, tail + 1)) if _enough(gpu, head, tail, first, end) else (first, end)


def _is_freed(gpu: GpuWindow, at: int) -> bool:
    """Tell whether most of the memory was freed at a sample: the program has ended."""
    used, before = gpu.columns["memory_used"][at], gpu.columns["memory_used"][at - 1]
    return used is not None and before is not None and used < 0.5 * before


def _level(gpu: GpuWindow, first: int, end: int) -> float:
    """Return the mean activity of some samples in percent: of kernels or, where it is more, of anything."""
    return max(0.0, *_means(gpu, first, end, ("sm_active", "utilization")))


def _means(gpu: GpuWindow, first: int, end: int, keys: Sequence[str]) -> list[float]:
    weights = gpu.weights[first:end]
    return [weighted(gpu.columns[key][first:end], weights) or 0.0 for key in keys]


def _enough(gpu: GpuWindow, head: int, tail: int, first: int, end: int) -> bool:
    """Tell whether what is left is worth judging on its own; a single burst in a long pause is not, unless a start was seen."""
    left, whole = gpu.times[tail] - gpu.times[head], gpu.times[end - 1] - gpu.times[first]
    least = _BRIEF if starts(gpu, first) else _SHORTEST
    return tail - head >= 2 and left >= min(least, 0.25 * whole)


def starts(gpu: GpuWindow, first: int) -> bool:
    """Tell whether the holder arrived at this place rather than before the window."""
    if first > 0:
        return True
    ages = [process.running_time for process, _ in gpu.processes[first] or ()]
    return any(age is not None and age < _YOUNG for age in ages)


def _first_kernel(gpu: GpuWindow, head: int, tail: int) -> int:
    """Return where kernels begin after a start: copies before them load weights. Unchanged where copies are most of the work."""
    sm = gpu.columns["sm_active"]
    found = next((at for at in range(head, tail + 1) if (sm[at] or 0.0) >= 2 * BUSY_SM), head)
    return found if gpu.times[found] - gpu.times[head] <= 0.5 * (gpu.times[tail] - gpu.times[head]) else head


def _steady(gpu: GpuWindow, head: int, end: int) -> int:
    """Return where work is at least half as much as in the second half of the stretch: first kernels and tuning come before."""
    usual = _level(gpu, (head + end) // 2, end)
    for at in range(head, end):
        if _level(gpu, at, _later(gpu, at, _AHEAD, end - 1) + 1) >= 0.5 * usual and _level(gpu, at, at + 1) > 0:
            return at
    return head


def _later(gpu: GpuWindow, at: int, seconds: float, last: int) -> int:
    """Return the last position at most `seconds` later."""
    until = gpu.times[at] + seconds
    while at < last and gpu.times[at + 1] <= until:
        at += 1
    return at


def settled(gpu: GpuWindow, first: int, end: int) -> tuple[int, int]:
    """Return the part of a stretch without work in which memory has its usual size: not while it is allocated or freed."""
    used = gpu.columns["memory_used"]
    known = sorted(value for at in range(first, end) if (value := used[at]) is not None)
    if not known:
        return first, end
    usual = 0.9 * known[len(known) // 2]
    places = [at for at in range(first, end) if (value := used[at]) is not None and value >= usual]
    return (places[0], places[-1] + 1) if places else (first, end)  # a driver may report absurd sizes


def phases(gpu: GpuWindow, first: int, end: int) -> list[tuple[int, int]]:
    """Cut a stretch where its activity changes lastingly: for two chunks or more, by more than 25 points in any part of the chip."""
    chunks = _chunks(gpu, first, end)
    if len(chunks) < 6:
        return [(first, end)]
    features = [_means(gpu, low, high, _FEATURES) for low, high in chunks]
    cuts = [0]
    for at in range(2, len(chunks) - 1):
        before = [sum(column) / (at - cuts[-1]) for column in zip(*features[cuts[-1] : at], strict=True)]
        if at - cuts[-1] >= 2 and _differs(before, features[at]) and _differs(before, features[at + 1]):
            cuts.append(at)
    edges = [chunks[cut][0] for cut in cuts] + [end]
    return list(pairwise(edges))


def _chunks(gpu: GpuWindow, first: int, end: int) -> list[tuple[int, int]]:
    length = max(_CHUNK, 4 * gpu.interval, (gpu.times[end - 1] - gpu.times[first]) / 60)
    chunks: list[tuple[int, int]] = []
    start = first
    for at in range(first + 1, end):
        if gpu.times[at] - gpu.times[start] >= length:
            chunks.append((start, at))
            start = at
    if chunks and gpu.times[end - 1] - gpu.times[start] < length / 2:
        chunks[-1] = (chunks[-1][0], end)
    else:
        chunks.append((start, end))
    return chunks


def _differs(one: Sequence[float], other: Sequence[float]) -> bool:
    return any(abs(here - there) > _APART for here, there in zip(one, other, strict=True))


_REPEATED = 5.5  # seconds for which an unchanged counter may not have been read again


def backfilled(
    counts: Sequence[float | None], times: Sequence[float], rates: Sequence[float | None]
) -> list[float | None]:
    """Return `rates` (percent) with the growth of a counter between two readings at all samples between them.

    A slow rate covers the seconds before it and is repeated in the samples after it. Where the counter is unknown, `rates` stay.
    """
    found = list(rates)
    last: int | None = None
    for at, count in enumerate(counts):
        if count is None:
            last = None
        elif last is None or count < (counts[last] or 0.0):
            last = at
        elif count != counts[last]:
            elapsed = times[at] - times[last]
            rate = 100.0 * (count - (counts[last] or 0.0)) / elapsed if elapsed > 0 else None
            found[last + 1 : at + 1] = [rate] * (at - last)
            last = at
    if last is not None and times and times[-1] - times[last] > _REPEATED:
        found[last + 1 :] = [0.0] * (len(found) - last - 1)
    return found
