"""Two runs of a program: whether one was slower than the other, by more than runs differ by themselves, and where the time went."""

from __future__ import annotations

from itertools import pairwise
from math import pi, sin
from statistics import median

from ..model.verdict import PARTS, Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..store.runs import KeptRun

LEAST = 8  # blocks of steps below which the spread of a run is not known
_SURE = 2.6  # standard errors by which two runs must differ: one in a hundred pairs of equal runs does
_USUAL = 1.96  # standard errors of the interval that is shown
_TRIFLE = 0.01  # part by which they must differ
_TELLING = 0.3  # part of the difference that one cause must explain to be named
_NORMAL = 1.4826  # standard deviation of a normal distribution by its median deviation
_ALIKE = 0.98  # correlation of neighbors beyond which it cannot be told from a few blocks
_FEW = 3  # earlier runs from which their own spread is taken


class RunPace:
    """The time that one step, item or token took in a run: the mean of the middle half of its blocks of steps, and its error."""

    __slots__ = ("error", "seconds")

    def __init__(self, seconds: float, error: float) -> None:
        self.seconds = seconds
        self.error = error


class RunCause:
    """Something whose share of the time changed: `part` of a budget or "data_wait"; shares in percent."""

    __slots__ = ("after", "before", "part")

    def __init__(self, part: str, before: float, after: float) -> None:
        self.part = part
        self.before = before
        self.after = after


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
            self.reason = _lacking(before if one is None else after)
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


def _lacking(run: KeptRun) -> str:
    if not run.number("steps", "throughput"):
        return f"run {run.short} counted no steps"
    return f"too few steps of run {run.short} were timed"


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
