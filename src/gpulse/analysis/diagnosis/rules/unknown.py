"""unknown: none of the other rules applies; says what would tell."""

from __future__ import annotations

from ..rule import DiagnosisRule, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

SHORTEST = 3.0  # seconds of samples below which nothing else is said


def _judge(case: Case) -> Verdict | None:
    load = case.load
    evidence = [
        seen("busy", load.busy),
        seen("sm_active", load.mean("sm_active")),
        seen("tensor_active", load.mean("tensor_active")),
        seen("dram_active", load.mean("dram_active")),
        seen("integer_active", load.mean("integer_active")),
        seen("cpu_main", load.cpu_main),
        seen("power_draw", load.mean("power_draw")),
    ]
    return found(load, "unknown", "low", evidence, advice=_what_would_tell(case), kind=_kind(case))


def _kind(case: Case) -> str:
    load = case.load
    if load.seconds < SHORTEST or load.end - load.first < 3:
        return "short"
    if load.busy is None:
        return "blind"
    if not case.worked and load.tracks:
        return "starting"
    return "mixed" if load.detailed else "no_counters"


def _what_would_tell(case: Case) -> list[str]:
    return {
        "short": ["watch_longer"],
        "blind": ["watch_longer", "doctor"],
        "starting": ["watch_longer", "check_device"],
        "no_counters": ["profile_kernel", "synthetic_data"],
        "mixed": ["profile_kernel", "synthetic_data"],
    }[_kind(case)]


RULE = DiagnosisRule(
    "unknown",
    "rest",
    "phase",
    _judge,
    needs=(),
    signature="No other rule applies, or there are too few samples.",
    blind="An honest answer: the advice names what would tell.",
    sources=("DS-Analyzer: compare synthetic, cached and real data",),
    advice=("watch_longer", "profile_kernel", "synthetic_data", "check_device", "doctor"),
)
