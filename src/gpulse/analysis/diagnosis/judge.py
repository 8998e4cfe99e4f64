"""The judge: from the windows of all GPUs to one verdict each, ranked, with everything else that was seen beside it."""

from __future__ import annotations

from ...model.catalog import DOWN
from ...model.verdict import PARTS, WAITS, WORK, Budget, Diagnosis, Verdict
from .rule import GROUPS, WAIT
from .rules import BY_KEY, ORDER, RULES
from .rules.stalls import stall_gaps
from .rules.unknown import SAMPLES, SHORTEST
from .span import Span
from .trace import TRACE_STEP
from .window import windows_of
from .workload import held_spans, phases, settled, starts, trim, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from ...model.snapshot import Snapshot
    from .rule import DiagnosisRule
    from .window import GpuWindow, WindowBuilder


_WINDOW_RULES = tuple(
    rule for rule in RULES if rule.scope == "window" and rule.key not in ("idle_allocation", "serving_idle")
)
_CARD_RULES = tuple(
    rule
    for rule in _WINDOW_RULES
    if rule.group in ("fault", "limit") and rule.key not in ("memory_leak", "out_of_memory")
)
_JOB_RULES = tuple(rule for rule in RULES if rule.scope == "job")
_DEVICE_RULES = tuple(rule for rule in RULES if rule.group == "device")
_HELD_RULES = tuple(BY_KEY[key] for key in ("loading", "starting", "serving_idle", "idle_allocation"))
_STALLS, _UNKNOWN = BY_KEY["stalls"], BY_KEY["unknown"]
_GROUP = {rule.key: GROUPS.index(rule.group) for rule in RULES}
# The rules that explain each wait, in order, and the share of the time from which it is told.
_EXPLAINS: dict[str, tuple[DiagnosisRule, ...]] = {
    part: tuple(rule for rule in RULES if rule.part == part and rule.scope == "phase" and rule.group == "feeding")
    for part in WAITS
}
_EXPLAINS |= {"network": (BY_KEY["waiting"],), "unexplained": (_UNKNOWN,), "checkpoint": ()}
_TOLD = {"launch": 0.35, "copy": 0.25}
_TOGETHER, _LARGEST = 0.22, 0.12  # of the time: several waits that are told together by the largest of them
# Seconds of a window that one slow batch or evaluation may fill, and how much larger a wait must be to be told all the same.
_BRIEF, _RARE = 5.0, 2.0
_MUCH = 8 << 30  # bytes of growth that make a leak the first thing to tell, however short it was
_WORTH_TELLING = 0.10  # of the time that a second phase must last
_COVERS = ("idle", "hang", "orphaned_memory", "not_used")  # leave nothing to say about what the GPU computes
_CALM = frozenset({"idle", "unknown", "healthy", "starting", "loading", "serving_idle"})
_BLIP = 0.04  # of the time with work below which a process is taken to hold the GPU without using it
_SPREAD = 0.3  # of the time from the first to the last work of a process that only started
_EDGE = 1.0  # seconds after the start and before the end of a process in which work is that of starting and ending
_FILLS = 3.0  # seconds after the start of a process in which it may clear the memory that it takes
_HOLD = 5.0  # seconds after the last work from which a process that stays holds the GPU idle


def diagnose(snapshots: Iterable[Snapshot]) -> Diagnosis:
    """Judge every GPU of some snapshots, given in order of time."""
    return judge(windows_of(snapshots))


def judge(builder: WindowBuilder) -> Diagnosis:
    """Judge every GPU of the windows collected so far; a GPU with MIG instances only by what concerns it as a whole."""
    workloads = [Workload(gpu) for gpu in builder.windows()]
    together = peers([one.whole for one in workloads])
    verdicts = [one.verdict(others) for one, others in zip(workloads, together, strict=True)]
    for one in workloads:
        one.whole.peers = ()  # peers refer to each other: 3,000 objects that only the garbage collector would free
    return Diagnosis([one for one in verdicts if one is not None], builder.start, builder.end, builder.samples)


class Workload:
    """One GPU with the stretches worth judging.

    `spans` are the times in which a process worked, without start-up and end, `holds` those in which one only held memory, and
    `whole` is the longest of the spans, or of the holds where nothing worked. `starts` are the start-ups before spans.
    """

    def __init__(self, gpu: GpuWindow) -> None:
        self.gpu = gpu
        active = working(gpu)
        self.spans: list[Span] = []
        self.holds: list[Span] = []
        self.starts: list[Span] = []
        for first, end in held_spans(gpu):
            self._add(first, end, active)
        self.work = [Work(gpu, span) for span in self.spans]
        everything = self.spans or self.holds or [Span(gpu, 0, len(gpu), active)]
        self.whole = max(everything, key=lambda span: span.seconds)
        self.seconds = sum(span.seconds for span in (*self.spans, *self.holds))

    def _add(self, first: int, end: int, active: Sequence[bool]) -> None:
        low, high = trim(self.gpu, first, end, active)
        span = Span(self.gpu, low, high, active)
        if _only_holds(self.gpu, first, end, active):
            self.holds.append(Span(self.gpu, *self._held(first, end, active), active))
            return
        self.spans.append(span)
        if low > first and starts(self.gpu, first):
            self.starts.append(Span(self.gpu, first, low, active))
        high = max((at + 1 for at in range(high, end) if active[at]), default=high)
        tail = Span(self.gpu, high, end, active) if end > high else None
        if tail is not None and tail.seconds >= max(_HOLD, 0.5 * span.seconds):
            self.holds.append(tail)

    def _held(self, first: int, end: int, active: Sequence[bool]) -> tuple[int, int]:
        """Return the part of a stretch in which memory is only held: a process that begins fills what it allocates."""
        low, high = settled(self.gpu, first, end)
        filled = self.gpu.times[first] + _FILLS if starts(self.gpu, first) else float("-inf")
        last = max((at for at in range(low, high) if active[at] and self.gpu.times[at] <= filled), default=low - 1)
        return (last + 1, high) if high - last > SAMPLES else (low, high)

    def verdict(self, others: Sequence[Span]) -> Verdict | None:
        """Return the ranked verdict of this GPU with its time budget, None for one whose MIG instances say all there is."""
        self.whole.worked, self.whole.peers = bool(self.spans), others
        rules = _CARD_RULES if self.gpu.divided else (*_WINDOW_RULES, *(_JOB_RULES if others else ()))
        found = [verdict for rule in rules if (verdict := rule.judge(self.whole)) is not None]
        if self.gpu.divided:
            return ranked(found) if found else None
        if not any(one.key in _COVERS for one in found):
            found += self._phases()
        verdict = ranked(found) if found else _first((), self.whole)
        return verdict.replace(budget=self.budget(resting=verdict.key == "idle"))

    def _phases(self) -> list[Verdict]:
        """Return the verdicts of all phases, the same verdict of several phases as one, its share added up."""
        merged: dict[str, Verdict] = {}
        for hold in self.holds:
            _merge(merged, _holding_verdict(hold), self._weight(hold))
        for work in self.work:
            if work.stalled is not None:
                _merge(merged, work.stalled, self._weight(work.span))
                _merge(merged, _phase(_between_gaps(work.span)), 0.999 * self._weight(work.span))
                continue
            for phase in work.phases:
                _merge(merged, _phase(phase), self._weight(phase))
        return list(merged.values())

    def _weight(self, span: Span) -> float:
        return span.seconds / self.seconds if self.seconds > 0 else 1.0

    def budget(self, resting: bool = False) -> Budget:
        """Return where the time of the whole window went; of a GPU that is `resting`, what a display draws is not waiting."""
        seconds = dict.fromkeys(PARTS, 0.0)
        estimated: set[str] = set()
        covered = 0.0
        for work in () if resting else self.work:
            for phase in work.phases:
                estimated |= phase.estimated
                for name, share in phase.parts.items():
                    seconds[name] += share * phase.seconds
            covered += work.span.seconds
            work.put_checkpoints(seconds)
        for start in () if resting else self.starts:
            seconds["starting"] += start.seconds
            covered += start.seconds
        for hold in () if resting else self.holds:
            seconds["starting" if _holding_verdict(hold).key in ("starting", "loading") else "idle"] += hold.seconds
            covered += hold.seconds
        whole = sum(self.gpu.weights)
        rest = max(0.0, whole - covered)
        mute = min(rest, self._mute_seconds())
        seconds["unread"] += mute
        seconds["idle"] += rest - mute
        self._put_edges(seconds)
        total = sum(seconds.values())
        shares = {name: spent / total for name, spent in seconds.items()} if total > 0 else {"unread": 1.0}
        return Budget(whole, shares, estimated)

    def _mute_seconds(self) -> float:
        """Return for how long nothing tells whether the GPU was idle: all the time where it reports no activity at all."""
        asleep = all(row.state == "asleep" for row in self.gpu.rows)
        silent = not asleep and self.whole.busy is None
        rows = zip(self.gpu.rows, self.gpu.weights, strict=True)
        return sum(weight for row, weight in rows if silent or row.state in DOWN)

    def _put_edges(self, seconds: dict[str, float]) -> None:
        """Count what was computed outside the spans, in starts and at the edges of samples, as computing."""
        activity = zip(self.gpu.columns["sm_active"], self.gpu.weights, strict=True)
        counted = sum((value or 0.0) / 100.0 * weight for value, weight in activity)
        left = counted - sum(seconds[part] for part in (*WORK, "throttled"))
        _move(seconds, ("starting", "idle"), "compute", left)


class Work:
    """One span of work: its phases, and the verdict of its pauses where it is interrupted again and again."""

    __slots__ = ("phases", "span", "stalled")

    def __init__(self, gpu: GpuWindow, span: Span) -> None:
        self.span = span
        span.worked = True
        self.stalled = _STALLS.judge(span)
        cuts = phases(gpu, span.first, span.end)
        # a span of one phase is that phase: its figures are not worked out twice
        self.phases = [span] if len(cuts) == 1 else [Span(gpu, low, high, span.active) for low, high in cuts]

    def put_checkpoints(self, seconds: dict[str, float]) -> None:
        """Count the waits of pauses in which the program writes as checkpoints."""
        if self.stalled is None or self.stalled.values.get("kind") != "checkpoint":
            return
        lost = self.stalled.values.get("lost")
        left = lost * self.span.seconds if isinstance(lost, float) else 0.0
        waits = ("storage", "thread", "outside", "network", "workers", "unexplained", "launch")
        _move(seconds, waits, "checkpoint", left)


def _move(seconds: dict[str, float], parts: Iterable[str], into: str, left: float) -> None:
    """Count some seconds, taken from these parts in order, as another part."""
    for part in parts:
        moved = min(max(0.0, left), seconds[part])
        seconds[part] -= moved
        seconds[into] += moved
        left -= moved


def _only_holds(gpu: GpuWindow, first: int, end: int, active: Sequence[bool]) -> bool:
    """Tell whether a process works so little, and not again and again, that it holds the GPU without using it."""
    # contexts are made and freed where a process begins and ends, if that was seen
    begun = gpu.times[first] + (_EDGE if starts(gpu, first) else 0.0)
    until = gpu.times[end - 1] - (_EDGE if end < len(gpu) else 0.0)
    places = [at for at in range(first, end) if active[at] and begun <= gpu.times[at] <= until]
    if not places:
        return True
    total, worked = sum(gpu.weights[first:end]), sum(gpu.weights[at] for at in places)
    spread = gpu.times[places[-1]] - gpu.times[places[0]]
    few = len(places) <= 2 and gpu.interval < 1.0
    return (worked < _BLIP * total or few) and spread < _SPREAD * total


def _holding_verdict(span: Span) -> Verdict:
    """Return the verdict of a stretch in which a process holds the GPU and runs nothing on it."""
    span.worked = False
    return next((found for rule in _HELD_RULES if (found := rule.judge(span)) is not None), None) or _phase(span)


def _phase(span: Span) -> Verdict:
    """Return what explains the largest wait of a phase, or what limits the GPU itself where it hardly waits."""
    span.worked = any(span.active[span.first : span.end])
    if span.end - span.first < SAMPLES:
        return _first((), span)
    wait = _largest_wait(span)
    verdict = _first((*_EXPLAINS[wait], *_DEVICE_RULES) if wait else _DEVICE_RULES, span)
    if verdict.confidence == "high" and not span.gpu.lists_processes:
        return verdict.replace(confidence="medium")  # who computes, and for whom, was not read
    return verdict


def _largest_wait(span: Span) -> str:
    """Return the part that the GPU waits for most, empty where that is too little to tell."""
    if span.seconds < SHORTEST:
        return ""
    rare = 1.0 if sum(span.gpu.weights) >= _BRIEF else _RARE
    waits = {part: span.parts.get(part, 0.0) / rare for part in WAITS}
    largest = max(waits, key=lambda part: waits[part])
    if waits[largest] >= _TOLD.get(largest, WAIT):
        return largest
    others = {part: share for part, share in waits.items() if part not in _TOLD}
    largest = max(others, key=lambda part: others[part])
    return largest if sum(others.values()) >= _TOGETHER and others[largest] >= _LARGEST else ""


def _between_gaps(span: Span) -> Span:
    """Return the longest stretch of a span that no pause interrupts."""
    edges = [span.start_time, *(edge for gap in stall_gaps(span) for edge in gap), span.end_time]
    start, end = max(zip(edges[::2], edges[1::2], strict=True), key=lambda stretch: stretch[1] - stretch[0])
    times, weights = span.gpu.times, span.gpu.weights
    margin = TRACE_STEP
    inside = [
        at
        for at in range(span.first, span.end)
        if times[at] - weights[at] >= start + margin and times[at] <= end - margin
    ]
    return Span(span.gpu, inside[0], inside[-1] + 1, span.active) if inside else span


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


def ranked(found: Sequence[Verdict]) -> Verdict:
    """Return the most important of several verdicts with the others beside it; what applied only briefly is left out."""
    ordered = sorted(found, key=_importance)
    if ordered[0].key in ("healthy", "busy"):  # a full memory is worth more than "all is well", and less than any limit
        ordered.sort(key=lambda one: one.key != "memory_pressure")
    first = ordered[0]
    rest = [one for one in ordered[1:] if (one.key not in _CALM and one.share >= _WORTH_TELLING) or _GROUP[one.key] < 3]
    return first.replace(also=rest)


def _importance(verdict: Verdict) -> tuple[int, float, int]:
    """Order by group; what the GPU does most of the time first, whether it is fed badly, limited by itself or held idle."""
    group = GROUPS.index("feeding") if _is_passing(verdict) else _GROUP[verdict.key]
    return (group, -verdict.share if group >= GROUPS.index("feeding") else 0.0, ORDER[verdict.key])


def _is_passing(verdict: Verdict) -> bool:
    """Tell whether a finding counts by its time only: what the GPU does, and what applied for a small part of the time."""
    group = BY_KEY[verdict.key].group
    if group == "device" or verdict.key in ("idle_allocation", "serving_idle", "starting", "loading"):
        return True
    if verdict.key == "memory_leak":
        grown = verdict.values.get("grown")
        return verdict.share < 0.3 and not (isinstance(grown, (int, float)) and grown >= _MUCH)
    if verdict.key == "xid":
        return verdict.share <= 0
    return (group == "ownership" and verdict.share < 0.2) or (group == "limit" and verdict.share < 0.01)


def _first(rules: Iterable[DiagnosisRule], span: Span) -> Verdict:
    """Return the first verdict that rules find, else `unknown`, which always says something."""
    return next(found for rule in (*rules, _UNKNOWN) if (found := rule.judge(span)) is not None)


def peers(spans: Sequence[Span]) -> list[list[Span]]:
    """Return for each span those of the other GPUs of the same job."""
    marks = [set(_marks(span)) for span in spans]
    return [
        [other for other, theirs in zip(spans, marks, strict=True) if other is not span and own & theirs]
        for span, own in zip(spans, marks, strict=True)
    ]


def _marks(span: Span) -> Iterator[Hashable]:
    """Yield what identifies the job of a GPU: the process itself, its batch job, or its parent and command."""
    for track in span.tracks:
        process = track.process
        yield ("pid", track.pid)
        if process.job:
            yield ("job", process.job)
        elif process.pod or process.container:
            yield ("container", process.pod or process.container, process.command)
        if process.parent is not None and process.parent > 1 and process.command:
            yield ("parent", process.parent, process.command)
