"""unknown: what was measured does not tell; says what is missing and what would tell."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, Span, Verdict, facts

SHORTEST = 3.0  # seconds of samples below which nothing else is said
SAMPLES = 5  # below which nothing is said of what a program does
_ADVICE = {
    "short": ("watch_longer",),
    "blind": ("watch_longer", "doctor"),
    "starting": ("watch_longer", "check_device"),
    "no_processes": ("watch_processes",),
    "hidden": ("find_holders",),
    "unlisted": ("watch_processes", "find_holders"),
    "unowned": ("find_holders",),
    "rare": ("watch_longer",),
    "no_children": ("watch_processes",),
    "no_counters": ("profile_kernel", "synthetic_data"),
    "mixed": ("profile_kernel", "synthetic_data"),
}


def _judge(span: Span) -> Verdict | None:
    kind = _kind(span)
    counters = ("sm_active", "tensor_active", "dram_active", "integer_active")
    evidence = facts(span, "busy", *counters, "cpu_main", "power_draw")
    return RULE.found(span, "low", evidence, advice=_ADVICE[kind], kind=kind, interval=span.interval)


def _kind(span: Span) -> str:
    if span.seconds < SHORTEST or span.end - span.first < SAMPLES:
        return "short"
    if span.busy is None:
        return "blind"
    if not span.worked and span.tracks:
        return "starting" if span.quiet else "rare"
    if not span.tracks and not span.worked:
        return "unowned" if span.gpu.lists_processes else "unlisted"
    if span.parts.get("unexplained", 0.0) >= WAIT:
        return "no_children" if span.tracks else "hidden" if span.gpu.lists_processes else "no_processes"
    return "mixed" if span.detailed else "no_counters"


RULE = DiagnosisRule(
    "unknown", "rest", "phase", _judge, part="unexplained", needs=(),
    advice=("watch_longer", "watch_processes", "find_holders", "profile_kernel", "synthetic_data", "check_device", "doctor"),
    signature="No other rule applies, there are too few samples, or what would tell was not read: processes, their workers, counters.",
    blind="An honest answer: it names what is missing, and the advice names what would tell.",
    sources=("DS-Analyzer: compare synthetic, cached and real data",),
)  # fmt: skip
