"""contention: two or more processes compute on one GPU."""

from __future__ import annotations

from ..load import holder_of
from ..rule import DiagnosisRule, above, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Confidence, Evidence, Verdict
    from ..load import Load
    from ..rule import Case
    from ..window import ProcessTrack

SHARE = 5.0  # per cent of the SM time that a process must use
_TOGETHER = 0.2  # of the time
_FULL = 70.0  # per cent of busy time that makes an unmeasured second process matter
_HELD = 500 << 20
_CPU = 0.5  # cores


def _judge(case: Case) -> Verdict | None:
    load = case.load
    if len(load.tracks) < 2:
        return None
    sure = [track for track in load.tracks if _uses(track, load)]
    likely = [track for track in load.tracks if track not in sure and _may_use(track, load)]
    if len(sure) + len(likely) < 2:
        return None
    both = [*sure, *likely]
    together = _overlap(both, load)
    if together < _TOGETHER:
        return None
    evidence: list[Evidence | None] = [above("computing_processes", float(len(both)), 2.0)]
    evidence += [above("process_sm", _mean(track, load), SHARE) for track in sure[:3]]
    evidence += [seen("sm_active", load.mean("sm_active")), seen("utilization", load.mean("utilization"))]
    confidence: Confidence = "high" if len(sure) >= 2 else "low"
    holders = [holder_of(track) for track in both]
    return found(
        load, "contention", confidence, evidence, advice=RULE.advice, processes=holders, share=together, count=len(both)
    )


def _mean(track: ProcessTrack, load: Load) -> float | None:
    known = [
        value
        for at, value in zip(track.at, track.values["sm_utilization"], strict=True)
        if value is not None and load.first <= at < load.end
    ]
    return sum(known) / len(known) if known else None


def _uses(track: ProcessTrack, load: Load) -> bool:
    return (_mean(track, load) or 0.0) >= SHARE


def _may_use(track: ProcessTrack, load: Load) -> bool:
    """Tell whether a process whose share the driver does not tell probably computes beside the others."""
    if _mean(track, load) is not None or (load.busy or 0.0) < _FULL:
        return False
    cpu = track.mean("cpu_percent", load.gpu.weights, load.places)
    return (cpu or 0.0) / 100.0 >= _CPU and max(track.known("memory_used"), default=0.0) >= _HELD


def _overlap(tracks: list[ProcessTrack], load: Load) -> float:
    """Return the share of the time in which at least two of the processes were there."""
    counts: dict[int, int] = {}
    for track in tracks:
        for at in set(track.at) & load.places:
            counts[at] = counts.get(at, 0) + 1
    shared = sum(load.gpu.weights[at] for at, count in counts.items() if count >= 2)
    return shared / load.seconds if load.seconds > 0 else 0.0


RULE = DiagnosisRule(
    "contention",
    "ownership",
    "window",
    _judge,
    needs=("processes", "sm_utilization"),
    signature=(
        f"At least two processes use {SHARE:.0f} % of the SM time or more each, together for {100 * _TOGETHER:.0f} "
        f"% of the time; or a second "
        "process holds memory and keeps a CPU busy beside one that fills the GPU."
    ),
    blind=(
        "The driver gives shares per process only for some samples, and none under MIG. Processes in other containers may be invisible; "
        "ranks of one job that share a GPU on purpose look the same."
    ),
    sources=("NVML nvmlDeviceGetProcessUtilization", "ICSE 2024 study of low GPU utilization: oversubscription"),
    advice=("move_job", "mps", "mig", "run_lock"),
)
