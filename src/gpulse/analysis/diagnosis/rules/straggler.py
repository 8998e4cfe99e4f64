"""straggler: one GPU of a job is slower than the others, which wait for it."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, below, facts, median, seen

CLOCK = 0.85  # of the median clock of the others
WORK = 0.75  # of the median of the others' kernel time
_SPINNING = 90.0  # per cent of kernel time of the others


def _judge(span: Span) -> Verdict | None:
    peers, gpus = span.peers, float(len(span.peers) + 1)
    if not peers or span.seconds < 5:
        return None
    clock, usual = span.mean("clock_sm"), median([one.mean("clock_sm") for one in peers])
    busy, others = span.busy, median([one.busy for one in peers])
    if clock is not None and usual and clock < CLOCK * usual and (busy or 0.0) >= 50:
        evidence = [
            below("clock_sm", clock, CLOCK * usual),
            seen("peer_clock", usual),
            *facts(span, "temperature", "tensor_active"),
            seen("peer_tensor", median([one.mean("tensor_active") for one in peers])),
        ]
        advice = ("fix_slow_gpu", "drop_node")
        return RULE.found(
            span, "high" if clock < 0.75 * usual else "medium", evidence, advice=advice, kind="clock", gpus=gpus
        )
    if busy is None or others is None or others < _SPINNING or busy >= WORK * others or busy < 2.0:
        return None
    evidence = [below("busy", busy, WORK * others), seen("peer_busy", others), seen("cpu_main", span.cpu_main)]
    return RULE.found(span, "medium", evidence, advice=("balance_data", "profile_host"), kind="starved", gpus=gpus)


RULE = DiagnosisRule(
    "straggler", "limit", "job", _judge, needs=("clock_sm", "utilization", "processes"),
    advice=("fix_slow_gpu", "balance_data", "drop_node"),
    signature=(
        f"Among the GPUs of one job, this one's SM clock is below {100 * CLOCK:.0f} % of the median of the others under "
        f"load, or its kernels run less than {100 * WORK:.0f} % as long while the others, which wait inside a "
        f"collective, read {_SPINNING:.0f} % or more."
    ),
    blind=(
        "Needs GPUs of the same job on this machine; a slow rank on another node is invisible. The waiting ranks look "
        "busier than the slow one, or all look alike."
    ),
    sources=("NVIDIA resiliency extension: straggler score below 0.75", "ByteDance what-if study of stragglers"),
)  # fmt: skip
