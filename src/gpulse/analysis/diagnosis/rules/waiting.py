"""waiting: the program waits for something outside: far storage, a lock, another machine, a user."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, Span, Verdict, below, lower, seen, sure, told

CPU = 0.60  # cores


def _judge(span: Span) -> Verdict | None:
    part = max(("outside", "network"), key=lambda one: span.parts.get(one, 0.0))
    states = span.states
    state = max((one for one in states if one != "running"), key=lambda one: states[one], default="")
    network = span.host("net_rx")
    evidence = [
        told(f"{part}_share", span.parts.get(part, 0.0)),
        below("cpu_tree", span.cpu_tree, CPU) if (span.cpu_tree or 0.0) < CPU else seen("cpu_tree", span.cpu_tree),
        seen(f"thread_{state}", 100 * states[state]) if state and states[state] >= 0.1 else None,
        seen("net_rx", network) if part == "network" else None,
        seen("busy", span.busy),
    ]
    confidence = sure(span, part)
    if not states:
        confidence = lower(confidence)  # little CPU says that it waits, not that what it waits for is outside
    return RULE.found(span, confidence, evidence, advice=_advice(part, state), kind=part, state=state)


def _advice(part: str, state: str) -> tuple[str, ...]:
    if part == "network":
        return ("local_copy", "more_workers", "profile_host")
    if state == "sleep":
        return ("profile_host", "more_workers", "local_copy")
    return ("profile_host", "local_copy", "more_workers")


RULE = DiagnosisRule(
    "waiting", "feeding", "phase", _judge, part="outside", needs=("tree_cpu_percent", "utilization"),
    advice=("profile_host", "local_copy", "more_workers"),
    signature=(
        f"The GPU waits for {100 * WAIT:.0f} % of the time or more while neither the program nor its workers run or "
        "read from a disk, and that is more than it waits for anything else."
    ),
    blind=(
        "Far storage, another machine, a lock, a rate limit and a user look the same from outside. Where the state of "
        "the thread cannot be read (another user's process), only its CPU time tells."
    ),
    sources=("gpulse H200 recordings of sleeping loaders", "ICSE 2024 study: interactive jobs"),
)  # fmt: skip
