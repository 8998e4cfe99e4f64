"""out_of_memory: a process ended just after the memory was full, or after steep growth."""

from __future__ import annotations

from itertools import pairwise

from ...events import FULL
from ..rule import DiagnosisRule, Span, Verdict, above, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..window import ProcessSamples

GROWN = 0.01  # of the whole memory, gained in the last seconds of a process that ends at a full GPU
STEEP = 0.15  # of the whole memory, gained in steps by a process until its end
_RECENT = 5.0  # seconds before the end that are looked at
_LAST_RISE = 3.0  # seconds between the last step and the end
_RISES = 2  # steps
GROWTH = 1.3  # times what was held before that each step must reach; a steady leak grows more slowly


def _judge(span: Span) -> Verdict | None:
    gpu = span.gpu
    ended = [
        track
        for track in gpu.tracks.values()
        if (gpu.own is None or track.pid in gpu.own)
        and track.at[-1] < len(gpu) - 1
        and gpu.rows[track.at[-1] + 1].state == "ok"
    ]
    for track in sorted(ended, key=lambda one: -one.at[-1]):
        if (verdict := _ran_out(span, track)) is not None:
            return verdict
    return None


def _ran_out(span: Span, track: ProcessSamples) -> Verdict | None:
    gpu = span.gpu
    last, total = track.at[-1], gpu.last("memory_total")
    recent = [at for at in track.at if gpu.times[at] >= gpu.times[last] - _RECENT]
    held = [(gpu.times[at], value) for at, value in track.between("memory_used", recent[0], last + 1)]
    if not total or not held:
        return None
    usable = max(1.0, total - (gpu.last("memory_reserved") or 0.0))
    full = 100.0 * max((gpu.columns["memory_used"][at] or 0.0 for at in recent), default=0.0) / usable
    rise = held[-1][1] - min(value for _, value in held)
    others = [other for other in gpu.tracks.values() if other is not track and other.at[0] <= last <= other.at[-1]]
    filled = full >= FULL and rise >= GROWN * total
    if not filled and not (rise >= STEEP * total and _climbs(held)):
        return None
    evidence = [
        above("memory_percent", full, FULL) if full >= FULL else seen("memory_percent", full),
        seen("process_memory", held[-1][1]),
        above("memory_rise", rise, STEEP * total) if rise >= STEEP * total else None,
    ]
    return RULE.found(
        span,
        "high" if filled else "medium",
        evidence,
        advice=("smaller_batch", "accumulate", "checkpointing", "expandable_segments") if not others else RULE.advice,
        processes=(track, *others),
        time=gpu.times[last],
        held=held[-1][1],
    )


def _climbs(held: list[tuple[float, float]]) -> bool:
    """Tell whether memory rose in large steps up to the end: work that asks for more each time, not a job that ends normally."""
    steps = [
        (time, later - earlier)
        for (_, earlier), (time, later) in pairwise(held)
        if later >= GROWTH * earlier and later - earlier >= (256 << 20)
    ]
    return len(steps) >= _RISES and held[-1][0] - steps[-1][0] <= _LAST_RISE


RULE = DiagnosisRule(
    "out_of_memory", "fault", "window", _judge, needs=("memory_used", "processes"),
    advice=("smaller_batch", "accumulate", "checkpointing", "other_tenants"),
    signature=(
        f"A process vanished from the GPU while {FULL:.0f} % of its memory was in use and still rising, or within "
        f"{_LAST_RISE:.0f} s of the last of several steep rises that together reached {100 * STEEP:.0f} % of the "
        "memory."
    ),
    blind=(
        "The error itself is not visible from outside: a process that ends normally or is killed at a full GPU looks "
        "the same, and a single allocation that fails at once leaves no rise. `gpulse.explain_oom` inside the program "
        "is exact."
    ),
    sources=("PyTorch CUDA semantics: memory management", "gpulse H200 trace `oom`"),
)  # fmt: skip
