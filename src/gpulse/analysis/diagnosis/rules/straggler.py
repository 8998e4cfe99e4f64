"""straggler: one GPU of a job is slower than the others, which wait for it."""

from __future__ import annotations

from ..rule import DiagnosisRule, below, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....model.verdict import Confidence, Evidence, Verdict
    from ..rule import Case

CLOCK = 0.85  # of the median clock of the others
WORK = 0.75  # of the median of the others' kernel time
_SPINNING = 90.0  # per cent of kernel time of the others


def _judge(case: Case) -> Verdict | None:
    load, peers = case.load, case.peers
    if not peers or load.seconds < 5:
        return None
    clock, usual = load.mean("clock_sm"), _median([one.mean("clock_sm") for one in peers])
    busy, others = load.busy, _median([one.busy for one in peers])
    if clock is not None and usual and clock < CLOCK * usual and (busy or 0.0) >= 50:
        evidence = [
            below("clock_sm", clock, CLOCK * usual),
            seen("peer_clock", usual),
            seen("temperature", load.mean("temperature")),
            seen("tensor_active", load.mean("tensor_active")),
            seen("peer_tensor", _median([one.mean("tensor_active") for one in peers])),
        ]
        return _verdict(case, "clock", "high" if clock < 0.75 * usual else "medium", evidence)
    if busy is None or others is None or others < _SPINNING or busy >= WORK * others or busy < 2.0:
        return None
    evidence = [
        below("busy", busy, WORK * others),
        seen("peer_busy", others),
        seen("cpu_main", load.cpu_main),
    ]
    return _verdict(case, "starved", "medium", evidence)


def _verdict(case: Case, kind: str, sure: Confidence, evidence: Sequence[Evidence | None]) -> Verdict:
    advice = ("fix_slow_gpu", "drop_node") if kind == "clock" else ("balance_data", "profile_host")
    return found(case.load, "straggler", sure, evidence, advice=advice, kind=kind, gpus=float(len(case.peers) + 1))


def _median(values: Sequence[float | None]) -> float | None:
    known = sorted(value for value in values if value is not None)
    return known[len(known) // 2] if known else None


RULE = DiagnosisRule(
    "straggler",
    "limit",
    "job",
    _judge,
    needs=("clock_sm", "utilization", "processes"),
    signature=(
        f"Among the GPUs of one job, this one's SM clock is below {100 * CLOCK:.0f} % of the median of "
        f"the others under load, or its kernels run less than "
        f"{100 * WORK:.0f} % as long while the others, which wait inside a collective, read {_SPINNING:.0f} % or more."
    ),
    blind=(
        "Needs GPUs of the same job on this machine; a slow rank on another node is invisible. The waiting ranks look busier than the slow "
        "one, or all look alike."
    ),
    sources=("NVIDIA resiliency extension: straggler score below 0.75", "ByteDance what-if study of stragglers"),
    advice=("fix_slow_gpu", "balance_data", "drop_node"),
)
