"""fault: the GPU was lost, reported an XID, or its memory had errors that could not be corrected."""

from __future__ import annotations

from itertools import pairwise

from ....model.xid import xid_of
from ..rule import DiagnosisRule, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case
    from ..window import Column


def _judge(case: Case) -> Verdict | None:
    gpu, load = case.gpu, case.load
    lost = [at for at, row in enumerate(gpu.rows) if row.state == "lost"]
    xids = _changes(gpu.columns["xid_last"])
    errors = _rise(gpu.columns["ecc_uncorrected"])
    if not lost and not xids and errors <= 0:
        return None
    seconds = sum(gpu.weights[at] for at in lost)
    back = bool(lost) and gpu.rows[-1].state != "lost"
    mild = not lost and errors <= 0 and all(xid_of(code).severity != "critical" for code in xids)
    evidence = [
        seen("state_lost", seconds) if lost else None,
        seen("xid_last", tuple(float(xid) for xid in xids)) if xids else None,
        seen("ecc_uncorrected", float(errors)) if errors > 0 else None,
    ]
    return found(
        load,
        "fault",
        "high",
        evidence,
        advice=_advice(bool(lost), xids, errors),
        start_time=gpu.times[lost[0]] if lost else None,
        end_time=gpu.times[lost[-1] + 1] if back else None,
        xid=float(xids[-1]) if xids else None,
        kind="lost" if lost else "ecc" if errors > 0 else "application" if mild else "xid",
    )


def _changes(column: Column) -> list[int]:
    """Return the XIDs that appear, each once, in order; one that is there from the first sample on counts too."""
    seen_codes: list[int] = []
    for value in column:
        if value is not None and int(value) not in seen_codes:
            seen_codes.append(int(value))
    return seen_codes


def _rise(column: Column) -> float:
    known = [value for value in column if value is not None]
    return sum(max(0.0, later - earlier) for earlier, later in pairwise(known))


def _advice(lost: bool, xids: list[int], errors: float) -> list[str]:
    if lost:
        return ["gpu_lost", "kernel_log"]
    if xids:
        return ["xid", "kernel_log"]
    return ["ecc", "kernel_log"]


RULE = DiagnosisRule(
    "fault",
    "fault",
    "window",
    _judge,
    needs=("state", "xid_last", "ecc_uncorrected"),
    signature="The GPU was lost at any sample, an XID was reported, or the count of uncorrected memory errors rose.",
    blind="An XID that was reported and cleared before gpulse started is not seen; the kernel log has it.",
    sources=("NVIDIA XID catalog (immediate action per code)", "NVIDIA GPU memory error management guide"),
    advice=("gpu_lost", "xid", "ecc", "kernel_log"),
)
