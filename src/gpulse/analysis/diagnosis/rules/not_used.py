"""not_used: the program whose report it is computed nothing on this GPU, though others did."""

from __future__ import annotations

from ..load import holder_of
from ..rule import DiagnosisRule, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case
    from ..window import ProcessTrack

OWN = 1.0  # per cent of the SM time that the program uses
OTHERS = 5.0  # per cent that others use


def _judge(case: Case) -> Verdict | None:
    load, own = case.load, case.gpu.own
    if own is None or not case.gpu.lists_processes:
        return None
    mine = [track for track in load.tracks if track.pid in own]
    others = [track for track in load.tracks if track.pid not in own and (_share(track) or 0.0) >= OTHERS]
    shares = [_share(track) for track in mine]
    if not others or any(share is None or share >= OWN for share in shares):
        return None
    evidence = [
        below("process_sm", max((share or 0.0 for share in shares), default=0.0), OWN),
        seen("computing_processes", float(len(others))),
        seen("cpu_main", load.cpu_main if mine else None),
    ]
    holders = [holder_of(track) for track in others]
    return found(load, "not_used", "high", evidence, advice=RULE.advice, processes=holders)


def _share(track: ProcessTrack) -> float | None:
    known = track.known("sm_utilization")
    return sum(known) / len(known) if known else None


RULE = DiagnosisRule(
    "not_used",
    "ownership",
    "window",
    _judge,
    needs=("processes", "sm_utilization"),
    signature=f"In a program's own report: its processes use less than {OWN:g} % of the SM time, and others {OTHERS:g} % or more.",
    blind="Only programs that watch themselves, `gpulse run` and notebook cells know which processes are theirs.",
    sources=("NVML nvmlDeviceGetProcessUtilization",),
    advice=("check_device", "other_tenants"),
)
