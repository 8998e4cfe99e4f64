"""contention: two or more processes compute on one GPU."""

from __future__ import annotations

from ...events import IDLE_HELD
from ..rule import DiagnosisRule, Evidence, Span, Verdict, above, facts
from ..span import sm_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..window import ProcessSamples

SHARE = 5.0  # per cent of the SM time that a process must use
_TOGETHER = 0.2  # of the time
_FULL = 70.0  # per cent of busy time that makes an unmeasured second process matter
_CPU = 0.5  # cores


def _judge(span: Span) -> Verdict | None:
    if len(span.tracks) < 2:
        return None
    shares = [(track, sm_share(track, span)) for track in span.tracks]
    sure = [track for track, share in shares if (share or 0.0) >= SHARE]
    likely = [track for track, share in shares if share is None and _may_use(track, span)]
    if len(sure) + len(likely) < 2:
        return None
    both = [*sure, *likely]
    together = _overlap(both, span)
    if together < _TOGETHER:
        return None
    evidence: list[Evidence | None] = [above("computing_processes", float(len(both)), 2.0)]
    evidence += [above("process_sm", share, SHARE) for track, share in shares if track in sure[:3]]
    evidence += facts(span, "sm_active", "utilization")
    return RULE.found(
        span, "high" if len(sure) >= 2 else "low", evidence, processes=both, share=together, count=len(both)
    )


def _may_use(track: ProcessSamples, span: Span) -> bool:
    """Tell whether a process whose share the driver does not tell probably computes beside the others."""
    if (span.busy or 0.0) < _FULL:
        return False
    cpu = span.mean_of(track, "cpu_percent")
    return (cpu or 0.0) / 100.0 >= _CPU and max(track.known("memory_used"), default=0.0) >= IDLE_HELD


def _overlap(tracks: list[ProcessSamples], span: Span) -> float:
    """Return the share of the time in which at least two of the processes were there."""
    counts: dict[int, int] = {}
    for track in tracks:
        for at in track.at:
            if span.first <= at < span.end:
                counts[at] = counts.get(at, 0) + 1
    shared = sum(span.gpu.weights[at] for at, count in counts.items() if count >= 2)
    return shared / span.seconds if span.seconds > 0 else 0.0


RULE = DiagnosisRule(
    "contention", "ownership", "window", _judge, needs=("processes", "sm_utilization"),
    advice=("move_job", "mps", "mig", "run_lock"),
    signature=(
        f"At least two processes use {SHARE:.0f} % of the SM time or more each, together for {100 * _TOGETHER:.0f} % of "
        "the time; or a second process holds memory and keeps a CPU busy beside one that fills the GPU."
    ),
    blind=(
        "The driver gives shares per process only for some samples, and none under MIG. Processes in other containers "
        "may be invisible; ranks of one job that share a GPU on purpose look the same."
    ),
    sources=("NVML nvmlDeviceGetProcessUtilization", "ICSE 2024 study of low GPU utilization: oversubscription"),
)  # fmt: skip
