"""not_used: the program whose report it is computed nothing on this GPU, though others did."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, below, seen
from ..span import sm_share

OWN = 1.0  # per cent of the SM time that the program uses
OTHERS = 5.0  # per cent that others use


def _judge(span: Span) -> Verdict | None:
    own = span.gpu.own
    if own is None or not span.gpu.lists_processes:
        return None
    used = {track.pid: sm_share(track) for track in span.tracks}
    mine = [track for track in span.tracks if track.pid in own]
    others = [track for track in span.tracks if track.pid not in own and (used[track.pid] or 0.0) >= OTHERS]
    shares = [used[track.pid] for track in mine]
    if not others or any(share is None or share >= OWN for share in shares):
        return None
    evidence = [
        below("process_sm", max((share or 0.0 for share in shares), default=0.0), OWN),
        seen("computing_processes", float(len(others))),
        seen("cpu_main", span.cpu_main if mine else None),
    ]
    return RULE.found(span, "high", evidence, processes=others)


RULE = DiagnosisRule(
    "not_used", "ownership", "window", _judge, needs=("processes", "sm_utilization"),
    advice=("check_device", "other_tenants"),
    signature=f"In a program's own report: its processes use less than {OWN:g} % of the SM time, and others {OTHERS:g} % or more.",
    blind="Only programs that watch themselves, `gpulse run` and notebook cells know which processes are theirs.",
    sources=("NVML nvmlDeviceGetProcessUtilization",),
)  # fmt: skip
