"""The judge: from the windows of all GPUs to one verdict each, ranked, with everything else that was seen beside it."""

from __future__ import annotations

from ...model.verdict import Diagnosis, Verdict
from .jobs import peers
from .load import Load
from .rule import GROUPS, Case
from .rules import BY_KEY, ORDER, RULES
from .rules.stalls import stall_gaps
from .window import windows_of
from .workload import held_spans, phases, settled, trim, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...model.snapshot import Snapshot
    from .window import GpuWindow, WindowBuilder

_WINDOW_RULES = tuple(rule for rule in RULES if rule.scope == "window" and rule.key != "idle_allocation")
_JOB_RULES = tuple(rule for rule in RULES if rule.scope == "job")
_PHASE_RULES = tuple(rule for rule in RULES if rule.scope == "phase" and rule.key not in ("unknown", "stalls"))
_STALLS, _UNKNOWN, _IDLE_ALLOCATION = BY_KEY["stalls"], BY_KEY["unknown"], BY_KEY["idle_allocation"]
_GROUP = {rule.key: GROUPS.index(rule.group) for rule in RULES}
_MUCH = 8 << 30  # bytes of growth that make a leak the first thing to tell, however short it was
_WORTH_TELLING = 0.10  # of the time that a second phase must last
_CALM = frozenset({"idle", "unknown", "healthy"})
_BLIP = 0.04  # of the time with work below which a process is taken to hold the GPU without using it
_SPREAD = 0.3  # of the time from the first to the last work of a process that only started
_HOLD = 5.0  # seconds after the last work from which a process that stays holds the GPU idle


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
    """One GPU with the stretches worth judging.

    `spans` are the times in which a process worked, without start-up and end, `holds` those in which one only held memory, and
    `whole` is the longest of the spans, or of the holds where nothing worked.
    """

    def __init__(self, gpu: GpuWindow) -> None:
        self.gpu = gpu
        active = working(gpu)
        self.spans: list[Load] = []
        self.holds: list[Load] = []
        for first, end in held_spans(gpu):
            self._add(first, end, active)
        self.worked = bool(self.spans)
        everything = self.spans or self.holds or [Load(gpu, 0, len(gpu), active)]
        self.whole = max(everything, key=lambda load: load.seconds)
        self.seconds = sum(load.seconds for load in (*self.spans, *self.holds))

    def _add(self, first: int, end: int, active: Sequence[bool]) -> None:
        low, high = trim(self.gpu, first, end, active)
        span = Load(self.gpu, low, high, active)
        if _only_holds(self.gpu, first, end, active):
            self.holds.append(Load(self.gpu, *settled(self.gpu, first, end), active))
            return
        self.spans.append(span)
        tail = Load(self.gpu, high, end, active) if end > high else None
        if tail is not None and tail.seconds >= max(_HOLD, 0.5 * span.seconds):
            self.holds.append(tail)

    def verdict(self, others: Sequence[Load]) -> Verdict:
        """Return the ranked verdict of this GPU."""
        case = Case(self.gpu, self.whole, self.worked, others)
        found = [verdict for rule in _WINDOW_RULES if (verdict := rule.judge(case)) is not None]
        if others:
            found += [verdict for rule in _JOB_RULES if (verdict := rule.judge(case)) is not None]
        if not _covered(found):
            found += self._phases()
        return ranked(found) if found else _told(_UNKNOWN.judge(case))

    def _phases(self) -> list[Verdict]:
        """Return the verdicts of all phases, the same verdict of several phases as one, its share added up."""
        merged: dict[str, Verdict] = {}
        for hold in self.holds:
            _merge(merged, _held(hold), self._weight(hold))
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


def _only_holds(gpu: GpuWindow, first: int, end: int, active: Sequence[bool]) -> bool:
    """Tell whether a process works so little, and not again and again, that it holds the GPU without using it."""
    places = [at for at in range(first, end) if active[at]]
    if not places:
        return True
    total, worked = sum(gpu.weights[first:end]), sum(gpu.weights[at] for at in places)
    spread = gpu.times[places[-1]] - gpu.times[places[0]]
    return (worked < _BLIP * total or len(places) <= 2) and spread < _SPREAD * total


def _held(load: Load) -> Verdict:
    """Return the verdict of a stretch in which a process holds the GPU and runs nothing on it."""
    case = Case(load.gpu, load, False)
    return _IDLE_ALLOCATION.judge(case) or _phase(load)


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
    return any(one.key in ("idle", "hang", "orphaned_memory") for one in found)


def ranked(found: Sequence[Verdict]) -> Verdict:
    """Return the most important of several verdicts with the others beside it; what applied only briefly is left out."""
    ordered = sorted(found, key=_importance)
    if ordered[0].key == "healthy":  # a full memory is worth more than "all is well", and less than any limit
        ordered.sort(key=lambda one: one.key != "memory_pressure")
    first = ordered[0]
    rest = [one for one in ordered[1:] if (one.key not in _CALM and one.share >= _WORTH_TELLING) or _GROUP[one.key] < 3]
    if first.key not in _CALM and (good := next((one for one in ordered[1:] if one.key == "healthy"), None)):
        rest.append(good)
    return first.replace(also=rest)


def _importance(verdict: Verdict) -> tuple[int, float, int]:
    """Order by group; what the GPU does most of the time first, whether it is fed badly, limited by itself or held idle."""
    group = GROUPS.index("feeding") if _is_passing(verdict) else _GROUP[verdict.key]
    return (group, -verdict.share if group >= GROUPS.index("feeding") else 0.0, ORDER[verdict.key])


def _is_passing(verdict: Verdict) -> bool:
    """Tell whether a finding counts by its time only: what the GPU does, and what applied for a small part of the time."""
    group = BY_KEY[verdict.key].group
    if group == "device" or verdict.key == "idle_allocation":
        return True
    if verdict.key == "memory_leak":
        grown = verdict.values.get("grown")
        return verdict.share < 0.3 and not (isinstance(grown, (int, float)) and grown >= _MUCH)
    return (group == "ownership" and verdict.share < 0.2) or (group == "limit" and verdict.share < 0.01)


def _told(verdict: Verdict | None) -> Verdict:
    assert verdict is not None
    return verdict
