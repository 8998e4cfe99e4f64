"""out_of_memory: a process ended just after the memory was full, or after steep growth."""

from __future__ import annotations

from ...events import FULL, LAST_RISE, RECENT, STEEP, ran_out
from ..rule import DiagnosisRule, Span, Verdict, above, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..window import ProcessSamples


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
    recent = [at for at in track.at if gpu.times[at] >= gpu.times[last] - RECENT]
    held = [(gpu.times[at], value) for at, value in track.between("memory_used", recent[0], last + 1)]
    if not total or not held:
        return None
    usable = max(1.0, total - (gpu.last("memory_reserved") or 0.0))
    full = 100.0 * max((gpu.columns["memory_used"][at] or 0.0 for at in recent), default=0.0) / usable
    if not (why := ran_out(held, full, total)):
        return None
    rise = held[-1][1] - min(value for _, value in held)
    others = [other for other in gpu.tracks.values() if other is not track and other.at[0] <= last <= other.at[-1]]
    evidence = [
        above("memory_percent", full, FULL) if full >= FULL else seen("memory_percent", full),
        seen("process_memory", held[-1][1]),
        above("memory_rise", rise, STEEP * total) if rise >= STEEP * total else None,
    ]
    return RULE.found(
        span,
        "high" if why == "full" else "medium",
        evidence,
        advice=("smaller_batch", "accumulate", "checkpointing", "expandable_segments") if not others else RULE.advice,
        processes=(track, *others),
        time=gpu.times[last],
        held=held[-1][1],
    )


RULE = DiagnosisRule(
    "out_of_memory", "fault", "window", _judge, needs=("memory_used", "processes"),
    advice=("smaller_batch", "accumulate", "checkpointing", "other_tenants"),
    signature=(
        f"A process vanished from the GPU while {FULL:.0f} % of its memory was in use and still rising, or within "
        f"{LAST_RISE:.0f} s of the last of several steep rises that together reached {100 * STEEP:.0f} % of the "
        "memory."
    ),
    blind=(
        "The error itself is not visible from outside: a process that ends normally or is killed at a full GPU looks "
        "the same, and a single allocation that fails at once leaves no rise. `gpulse.explain_oom` inside the program "
        "is exact."
    ),
    sources=("PyTorch CUDA semantics: memory management", "gpulse H200 trace `oom`"),
)  # fmt: skip
