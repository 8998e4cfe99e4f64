"""unknown: what was measured does not tell; says what is missing and what would tell."""

from __future__ import annotations

from ..rule import WAIT, DiagnosisRule, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

SHORTEST = 3.0  # seconds of samples below which nothing else is said
SAMPLES = 5  # below which nothing is said of what a program does
_ADVICE = {
    "short": ("watch_longer",),
    "blind": ("watch_longer", "doctor"),
    "starting": ("watch_longer", "check_device"),
    "no_processes": ("watch_processes",),
    "no_children": ("watch_processes",),
    "no_counters": ("profile_kernel", "synthetic_data"),
    "mixed": ("profile_kernel", "synthetic_data"),
}


def _judge(case: Case) -> Verdict | None:
    load = case.load
    kind = _kind(case)
    evidence = [
        seen("busy", load.busy),
        seen("sm_active", load.mean("sm_active")),
        seen("tensor_active", load.mean("tensor_active")),
        seen("dram_active", load.mean("dram_active")),
        seen("integer_active", load.mean("integer_active")),
        seen("cpu_main", load.cpu_main),
        seen("power_draw", load.mean("power_draw")),
    ]
    return found(load, "unknown", "low", evidence, advice=_ADVICE[kind], kind=kind, interval=load.interval)


def _kind(case: Case) -> str:
    load = case.load
    if load.seconds < SHORTEST or load.end - load.first < SAMPLES:
        return "short"
    if load.busy is None:
        return "blind"
    if not case.worked and load.tracks:
        return "starting"
    if load.parts.get("unexplained", 0.0) >= WAIT:
        return "no_children" if load.tracks else "no_processes"
    return "mixed" if load.detailed else "no_counters"


RULE = DiagnosisRule(
    "unknown",
    "rest",
    "phase",
    _judge,
    part="unexplained",
    needs=(),
    signature="No other rule applies, there are too few samples, or what would tell was not read: processes, their workers, counters.",
    blind="An honest answer: it names what is missing, and the advice names what would tell.",
    sources=("DS-Analyzer: compare synthetic, cached and real data",),
    advice=("watch_longer", "watch_processes", "profile_kernel", "synthetic_data", "check_device", "doctor"),
)
