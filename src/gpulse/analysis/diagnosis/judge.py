"""The judge: from the windows of all GPUs to one verdict each, ranked, with everything else that was seen beside it."""

from __future__ import annotations

from ...model.verdict import Diagnosis, Verdict
from .jobs import peers
from .load import Load
from .rule import GROUPS, Case
from .rules import BY_KEY, ORDER, RULES
from .rules.stalls import stall_gaps
from .window import windows_of
from .workload import held_spans, phases, trim, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...model.snapshot import Snapshot
    from .window import GpuWindow, WindowBuilder

_WINDOW_RULES = tuple(rule for rule in RULES if rule.scope == "window")
_JOB_RULES = tuple(rule for rule in RULES if rule.scope == "job")
_PHASE_RULES = tuple(rule for rule in RULES if rule.scope == "phase" and rule.key not in ("unknown", "stalls"))
_STALLS, _UNKNOWN = BY_KEY["stalls"], BY_KEY["unknown"]
_GROUP = {rule.key: GROUPS.index(rule.group) for rule in RULES}
_WORTH_TELLING = 0.10  # of the time that a second phase must last
_CALM = frozenset({"idle", "unknown", "healthy"})


def diagnose(snapshots: Iterable[Snapshot]) -> Diagnosis:
    """Judge every GPU of some snapshots, given in order of time."""
    return judge(windows_of(snapshots))


def judge(builder: WindowBuilder) -> Diagnosis:
    """Judge every GPU of the windows collected so far."""
    workloads = [Workload(gpu) for gpu in builder.windows()]
    together = peers([one.whole for one in workloads])
    verdicts = [one.verdict(others) for one, others in zip(workloads, together, strict=True)]
    return Diagnosis(verdicts, builder.start, builder.end, builder.samples)


class Workload:
    """One GPU with the stretches worth judging: `whole` spans them all, `parts` are the phases."""

    def __init__(self, gpu: GpuWindow) -> None:
        self.gpu = gpu
        active = working(gpu)
        spans = [trim(gpu, first, end, active) for first, end in held_spans(gpu)]
        self.worked = any(active[at] for first, end in spans for at in range(first, end))
        if self.worked:
            spans = [span for span in spans if any(active[at] for at in range(*span))]
        self.spans = [Load(gpu, *span, active) for span in spans]
        longest = max(spans, key=lambda span: sum(gpu.weights[span[0] : span[1]]), default=(0, len(gpu)))
        self.whole = Load(gpu, *longest, active)
        self.seconds = sum(span.seconds for span in self.spans)

    def verdict(self, others: Sequence[Load]) -> Verdict:
        """Return the ranked verdict of this GPU."""
        case = Case(self.gpu, self.whole, self.worked, others)
        found = [verdict for rule in _WINDOW_RULES if (verdict := rule.judge(case)) is not None]
        if others:
            found += [verdict for rule in _JOB_RULES if (verdict := rule.judge(case)) is not None]
        if not _covered(found):
            found += self._phases()
        return _ranked(found) if found else _told(_UNKNOWN.judge(case))

    def _phases(self) -> list[Verdict]:
        """Return the verdicts of all phases, the same verdict of several phases as one, its share added up."""
        merged: dict[str, Verdict] = {}
        for span in self.spans:
            stalled = _STALLS.judge(Case(self.gpu, span, self.worked))
            if stalled is not None:
                _merge(merged, stalled, self._weight(span))
                _merge(merged, _phase(_between_gaps(span)), 0.999 * self._weight(span))
                continue
            for low, high in phases(self.gpu, span.first, span.end):
                part = Load(self.gpu, low, high, span.active)
                _merge(merged, _phase(part), self._weight(part))
        return list(merged.values())

    def _weight(self, load: Load) -> float:
        return load.seconds / self.seconds if self.seconds > 0 else 1.0


def _phase(load: Load) -> Verdict:
    """Return the first verdict that fits a phase."""
    case = Case(load.gpu, load, any(load.active[load.first : load.end]))
    for rule in _PHASE_RULES:
        if (verdict := rule.judge(case)) is not None:
            return verdict
    return _told(_UNKNOWN.judge(case))


def _between_gaps(span: Load) -> Load:
    """Return the longest stretch of a span that no pause interrupts."""
    edges = [span.first, *(place for gap in stall_gaps(span) for place in gap), span.end]
    stretches = list(zip(edges[::2], edges[1::2], strict=True))
    first, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    return Load(span.gpu, first, max(first + 1, end), span.active)


def _merge(merged: dict[str, Verdict], verdict: Verdict, weight: float) -> None:
    """Add a phase to the verdicts so far; the numbers told are those of the longest phase."""
    before = merged.get(verdict.key)
    if before is None:
        merged[verdict.key] = verdict.replace(share=weight)
        return
    longer = verdict if weight > before.share else before
    merged[verdict.key] = longer.replace(
        share=before.share + weight, start=min(before.start, verdict.start), end=max(before.end, verdict.end)
    )


def _covered(found: Sequence[Verdict]) -> bool:
    """Tell whether the findings leave nothing to say about what the GPU computes."""
    return any(one.key in ("idle_allocation", "idle", "hang", "orphaned_memory") for one in found)


def _ranked(found: Sequence[Verdict]) -> Verdict:
    """Return the first verdict, with the others beside it; short phases are left out unless nothing else was found."""
    ordered = sorted(found, key=_importance)
    first = ordered[0]
    rest = [one for one in ordered[1:] if (one.key not in _CALM and one.share >= _WORTH_TELLING) or _GROUP[one.key] < 3]
    if first.key not in _CALM and (good := next((one for one in ordered[1:] if one.key == "healthy"), None)):
        rest.append(good)
    return first.replace(also=rest)


def _importance(verdict: Verdict) -> tuple[int, float, int]:
    """Order by group; what the GPU does most of the time first, whether it is fed badly or limited by itself."""
    group = min(_GROUP[verdict.key], GROUPS.index("feeding") if _GROUP[verdict.key] == GROUPS.index("device") else 9)
    return (group, -verdict.share if group >= GROUPS.index("feeding") else 0.0, ORDER[verdict.key])


def _told(verdict: Verdict | None) -> Verdict:
    assert verdict is not None
    return verdict
