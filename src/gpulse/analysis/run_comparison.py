"""Runs and ranks beside each other: whether a run was slower than another, which rank the others wait for, and why."""

from __future__ import annotations

from itertools import pairwise
from math import pi, sin
from statistics import median

from ..model.verdict import PARTS, Budget
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..store.runs import KeptRun
    from .summary import GpuSummary, Summary

LEAST = 8  # blocks of steps below which the spread of a run is not known
_SURE = 2.6  # standard errors by which two runs must differ: one in a hundred pairs of equal runs does
_USUAL = 1.96  # standard errors of the interval that is shown
_TRIFLE = 0.01  # part by which they must differ
_TELLING = 0.3  # part of the difference that one cause must explain to be named
_NORMAL = 1.4826  # standard deviation of a normal distribution by its median deviation
_ALIKE = 0.98  # correlation of neighbors beyond which it cannot be told from a few blocks
_FEW = 3  # earlier runs from which their own spread is taken


class RunPace(Value):
    """The time that one step, item or token took in a run: the mean of the middle half of its blocks of steps, and its error."""

    seconds: float
    error: float


class RunCause(Value):
    """Something whose share of the time changed: `part` of a budget or "data_wait"; shares in percent."""

    part: str
    before: float
    after: float


class RunComparison:
    """How `after` compares with `before`.

    `change` is the part by which it was slower (0.07) or faster (-0.06), `margin` how far that may be off; None where it cannot be
    told, with the `reason`. `different` if it is more than chance. `unit` is what was compared: step, item or token. `cause` is what
    explains most of a difference, None if nothing does.
    """

    def __init__(self, before: KeptRun, after: KeptRun, earlier: Sequence[KeptRun] = ()) -> None:
        self.before = before
        self.after = after
        self.unit = common_unit(before, after)
        self.change: float | None = None
        self.margin: float | None = None
        self.different = False
        self.reason = ""
        self.cause: RunCause | None = None
        one, two = pace(before, self.unit), pace(after, self.unit)
        if one is None or two is None:
            run = before if one is None else after
            few = f"too few steps of run {run.short} were timed"
            self.reason = few if run.number("steps", "throughput") else f"run {run.short} counted no steps"
            return
        self.change = two.seconds / one.seconds - 1.0
        spread = _between(earlier, after, self.unit)
        error = ((one.error / one.seconds) ** 2 + (two.error / two.seconds) ** 2 + 2 * spread**2) ** 0.5
        self.margin = _USUAL * error
        self.different = abs(self.change) > max(_SURE * error, _TRIFLE)
        if self.different:
            self.cause = _cause(before, after, self.change)

    def to_plain(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        cause = self.cause and {"part": self.cause.part, "before": self.cause.before, "after": self.cause.after}
        names = ("unit", "change", "margin", "different")
        return {
            "before": self.before.id,
            "after": self.after.id,
            **{name: getattr(self, name) for name in names},
            "reason": self.reason or None,
            "cause": cause,
        }


def common_unit(before: KeptRun, after: KeptRun) -> str:
    """Return what to compare: steps, or tokens or items where their number in a step differs: a larger batch may take longer."""
    for unit in ("token", "item"):
        one, two = (each_step(run, unit) for run in (before, after))
        if one and two and abs(one / two - 1) > _TRIFLE:
            return unit
    return "step"


def each_step(run: KeptRun, unit: str) -> float:
    """Return how many items or tokens a step of a run has; 0 if they were not counted."""
    return (run.number(f"{unit}s", "throughput") or 0.0) / (run.number("steps", "throughput") or 1.0)


def pace(run: KeptRun, unit: str) -> RunPace | None:
    """Return the time for one unit; None if too few steps were timed."""
    times = [float(one) for one in run.list("step_blocks") if isinstance(one, (int, float)) and one > 0]
    if len(times) < LEAST:
        return None
    count = 1.0 if unit == "step" else each_step(run, unit)
    return RunPace(middle(times) / count, standard_error(times) / count) if count else None


def middle(times: Sequence[float]) -> float:
    """Return the mean of the middle half: a median that does not jump where steps come in kinds."""
    cut = len(times) // 4
    kept = sorted(times)[cut : len(times) - cut]
    return sum(kept) / len(kept)


def standard_error(times: Sequence[float]) -> float:
    """Return how far the mean of the middle half may be off; blocks that resemble their neighbors count as fewer."""
    ordered, cut = sorted(times), len(times) // 4
    low, high = ordered[cut], ordered[len(times) - cut - 1]
    drawn = [min(max(time, low), high) for time in times]  # winsorized, as the theory of trimmed means has it
    mean = sum(drawn) / len(drawn)
    spread = sum((time - mean) ** 2 for time in drawn) / (len(drawn) - 1)
    signs = [(time > mean) - (time < mean) for time in drawn]
    alike = sum(one * two for one, two in pairwise(signs)) / max(1, sum(map(abs, signs)) - 1)
    alike = min(sin(pi / 2 * max(alike, 0.0)), _ALIKE)  # the correlation of values by that of their signs
    count = max(2.0, len(times) * (1 - alike) / (1 + alike))
    return float((spread / count) ** 0.5 / (1 - 2 * cut / len(times)))


def _between(earlier: Sequence[KeptRun], run: KeptRun, unit: str) -> float:
    """Return how far runs of the same commit on the same machine differ by themselves, as a part; 0 if there are too few to tell."""
    alike = [one for one in earlier if one.text("host") == run.text("host") and _commit(one) == _commit(run)]
    paces = [found.seconds for one in alike if (found := pace(one, unit)) is not None]
    if len(paces) < _FEW:
        return 0.0
    usual = median(paces)
    return float(_NORMAL * median(abs(one - usual) for one in paces) / usual)


def _commit(run: KeptRun) -> tuple[object, object]:
    git = run.part("git")
    return git.get("commit"), git.get("dirty")


def _cause(before: KeptRun, after: KeptRun, change: float) -> RunCause | None:
    """Return the part of the time that grew with a slower run, or shrank with a faster one, and explains most of it."""
    best: RunCause | None = None
    most = _TELLING * abs(change)
    for part in ("data_wait", *(part for part in PARTS if part not in ("starting", "idle", "unread"))):
        one, two = share(before, part), share(after, part)
        if one is None or two is None:
            continue
        # in units of the time that one step took before
        grown = (two / 100 * (1 + change) - one / 100) * (1 if change > 0 else -1)
        if grown > most and round(one) != round(two):
            best, most = RunCause(part, one, two), grown
    return best


def share(run: KeptRun, part: str) -> float | None:
    """Return the share of the time that went into a part, in percent; None if it is not known."""
    if part == "data_wait":
        return run.number("data_wait", "throughput")
    budget = Budget.from_plain(run.plain.get("budget"))
    return None if budget is None else 100.0 * budget.shares.get(part, 0.0)


_APART = 1.05  # times the median step time above which a rank steps on its own, not in step with the others
_NOTABLE = 0.05  # share of a step below which a difference is chance
_FLOOR = 0.002  # seconds per step below which nobody cares
_SLOW_CLOCK = 0.95  # times the others' SM clock
_NUMBERS = ("pid", "seconds", "steps", "step_p50", "step_p95", "step_max", "waited", "memory", "energy")


class RankSummary(Value):
    """What one rank did. `waited` is its time spent waiting for data, `memory` the peak of its tensors in bytes, `gpu` the UUID of its GPU.

    `energy` is that of its GPU, if no other rank uses it. `done`: it has ended. None where unknown.
    """

    rank: int
    host: str = ""
    pid: int | None = None
    gpu: str | None = None
    seconds: float = 0.0
    steps: int = 0
    step_p50: float | None = None
    step_p95: float | None = None
    step_max: float | None = None
    waited: float = 0.0
    memory: float | None = None
    energy: float | None = None
    done: bool = False
    device: GpuSummary | None = None

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RankSummary:
        """Return the figures in a file; raise ValueError or TypeError if it has none."""
        told: dict[str, Any] = {key: plain[key] for key in _NUMBERS if isinstance(plain.get(key), (int, float))}
        if isinstance(gpu := plain.get("gpu"), str):
            told["gpu"] = gpu
        return cls(int(plain["rank"]), str(plain.get("host") or "")[:64], **told, done=bool(plain.get("done")))

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {key: getattr(self, key) for key in self._fields if key not in ("device", "done")}

    @property
    def wait_per_step(self) -> float:
        """Seconds per step that it waited for data."""
        return self.waited / self.steps if self.steps else 0.0

    @property
    def busy(self) -> float | None:
        """The share of time in which its GPU computed, in percent; a GPU that waits in a collective hardly does."""
        active = None if self.device is None else self.device.stats.get("sm_active")
        return None if active is None else active.mean


class Straggler(Value):
    """The rank that the others wait for: `excess` seconds per step, out of steps of `step` seconds.

    `together` if all step at the same pace, so that the others really wait. `reason` is data, throttled, clock, compute or nothing.
    `own` and `others` are the figures of the reason: seconds per step, MHz or percent.
    """

    rank: RankSummary
    excess: float
    step: float
    together: bool
    reason: str = ""
    own: float | None = None
    others: float | None = None

    @property
    def percent(self) -> float:
        """How much longer than the others it needs for a step."""
        return 100.0 * self.excess / max(self.step - self.excess, 1e-9)

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        plain = {key: getattr(self, key) for key in self._fields if key != "rank"}
        return {"rank": self.rank.rank, "percent": self.percent, **plain}


def with_devices(ranks: Sequence[RankSummary], summary: Summary, places: Mapping[int, str]) -> None:
    """Add what the summary of the machine says of each rank's GPU; `places` are the GPUs by PID, as the driver lists them."""
    gpus = {_bare(gpu.uuid): gpu for gpu in summary.gpus}
    for rank in ranks:
        rank.gpu = rank.gpu or places.get(rank.pid or 0)
    for rank in ranks:
        alone = sum(_bare(other.gpu) == _bare(rank.gpu) for other in ranks) == 1
        if rank.gpu is not None and alone and (gpu := gpus.get(_bare(rank.gpu))) is not None:
            rank.device = gpu
            rank.energy = gpu.energy if rank.energy is None else rank.energy
            rank.memory = gpu.peak_memory if rank.memory is None else rank.memory


def _bare(uuid: str | None) -> str:
    """Return a UUID without the first letters, which torch leaves out."""
    return (uuid or "").lower().removeprefix("gpu-")


def straggler(ranks: Sequence[RankSummary]) -> Straggler | None:
    """Return the rank that the others wait for, or that is slower than they are; None if they are alike or cannot be compared."""
    known = [rank for rank in ranks if rank.steps and rank.step_p50]
    if len(known) < 2:
        return None
    slowest = max(known, key=lambda rank: rank.step_p50 or 0.0)
    step, usual = slowest.step_p50 or 0.0, median(rank.step_p50 or 0.0 for rank in known if rank is not slowest)
    if step > _APART * usual:
        return _with_reason(Straggler(slowest, step - usual, step, together=False), known)
    # in step: all need the time of the slowest, and what tells them apart is how much of it each one works itself
    counted = all(rank.busy is not None for rank in known)
    own = {one.rank: one.wait_per_step + (step * (one.busy or 0.0) / 100.0 if counted else 0.0) for one in known}
    slowest = max(known, key=lambda rank: own[rank.rank])
    excess = own[slowest.rank] - median(own[rank.rank] for rank in known if rank is not slowest)
    if excess < max(_NOTABLE * step, _FLOOR):
        return None
    return _with_reason(Straggler(slowest, min(excess, step), step, together=True), known)


def _with_reason(found: Straggler, ranks: Sequence[RankSummary]) -> Straggler:
    """Say what the rank has that the others have not: waits, a throttled or slower GPU, or more to compute."""
    rank, others = found.rank, [one for one in ranks if one is not found.rank]
    waits = median(one.wait_per_step for one in others)
    if rank.wait_per_step - waits >= found.excess / 2:
        found.reason, found.own, found.others = "data", rank.wait_per_step, waits
        return found
    gpu = rank.device
    if gpu is not None and gpu.throttled_seconds >= 0.1 * rank.seconds > 0:
        found.reason = "throttled"
        return found
    clocks = [one.device.stats["clock_sm"].mean for one in others if one.device and "clock_sm" in one.device.stats]
    if (
        gpu is not None
        and clocks
        and "clock_sm" in gpu.stats
        and gpu.stats["clock_sm"].mean < _SLOW_CLOCK * median(clocks)
    ):
        found.reason, found.own, found.others = "clock", gpu.stats["clock_sm"].mean, median(clocks)
        return found
    shares = [one.busy for one in others if one.busy is not None]
    if rank.busy is not None and shares and rank.busy > median(shares):
        found.reason, found.own, found.others = "compute", rank.busy, median(shares)
    return found
