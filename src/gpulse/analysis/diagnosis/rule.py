"""Diagnosis rules: one verdict each, with what docs and ranking need, the function that finds it, and its evidence."""

from __future__ import annotations

from ...model.verdict import Evidence, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, TypeAlias

    from ...model.verdict import Confidence, Holder, Plain, Side
    from .load import Load
    from .window import GpuWindow

    Group: TypeAlias = Literal["fault", "ownership", "limit", "feeding", "device", "rest"]
    Scope: TypeAlias = Literal["window", "phase", "job"]

    from ...model.catalog import Server

GROUPS: tuple[Group, ...] = ("fault", "ownership", "limit", "feeding", "device", "rest")
WAIT = 0.18  # of the time from which a wait is told as what limits the GPU
_RARE = 1.5  # seconds between samples
_LOWER: dict[Confidence, Confidence] = {"high": "medium", "medium": "low", "low": "low"}


class Case:
    """What a rule judges: one GPU, the whole window of it, the load of the workload or of one phase, and the GPUs of the same job."""

    __slots__ = ("gpu", "load", "peers", "worked")

    def __init__(self, gpu: GpuWindow, load: Load, worked: bool, peers: Sequence[Load] = ()) -> None:
        self.gpu = gpu
        self.load = load
        self.worked = worked
        self.peers = peers


class DiagnosisRule:
    """One verdict.

    `needs` lists the metrics it cannot do without, `signature` says in words when it fires, `blind` what it cannot see, `sources`
    where its thresholds come from; all of it is printed in docs/diagnosis.md. `advice` holds keys of texts. `part` is the part of the
    time budget that the rule explains: it is asked when that part is the largest that the GPU waits for.
    """

    __slots__ = (
        "advice",
        "blind",
        "group",
        "judge",
        "key",
        "needs",
        "part",
        "scope",
        "signature",
        "sources",
    )

    def __init__(
        self,
        key: str,
        group: Group,
        scope: Scope,
        judge: Callable[[Case], Verdict | None],
        *,
        needs: Sequence[str],
        signature: str,
        blind: str,
        sources: Sequence[str],
        advice: Sequence[str] = (),
        part: str = "",
    ) -> None:
        self.key = key
        self.group = group
        self.scope = scope
        self.judge = judge
        self.needs = tuple(needs)
        self.signature = signature
        self.blind = blind
        self.sources = tuple(sources)
        self.advice = tuple(advice)
        self.part = part


def sure(load: Load, part: str) -> Confidence:
    """Return how sure a wait is: by its share of the time, the number of samples, and whether activity is counted or guessed."""
    share, samples = load.parts.get(part, 0.0), load.end - load.first
    if not load.traced and load.interval > _RARE:
        return "low"  # what happens between two samples is not known
    if share >= 0.4 and samples >= 10 and load.seconds >= 5 and load.detailed:
        return "high"
    return "medium" if share >= 0.2 and samples >= 5 else "low"


def found(
    load: Load,
    key: str,
    confidence: Confidence,
    evidence: Sequence[Evidence | None],
    *,
    advice: Sequence[str] = (),
    processes: Sequence[Holder] | None = None,
    share: float = 1.0,
    **values: Plain,
) -> Verdict:
    """Return a verdict about a load; evidence that is None is left out."""
    return Verdict(
        key,
        confidence,
        [one for one in evidence if one is not None],
        advice=advice,
        index=load.gpu.index,
        uuid=load.gpu.uuid,
        processes=load.holders() if processes is None else processes,
        start=load.start_time,
        end=load.end_time,
        share=share,
        values=values,
        instance=load.gpu.instance,
    )


def above(metric: str, value: float | None, threshold: float) -> Evidence | None:
    """Return evidence for a value at or above its threshold; None when there is no value."""
    return None if value is None else Evidence(metric, round(value, 4), threshold, "above")


def below(metric: str, value: float | None, threshold: float) -> Evidence | None:
    """Return evidence for a value below its threshold; None when there is no value."""
    return None if value is None else Evidence(metric, round(value, 4), threshold, "below")


def told(metric: str, share: float) -> Evidence | None:
    """Return evidence for the share of the time (0–1) that a wait takes; a smaller one is told where several waits add up."""
    return above(metric, 100 * share, 100 * WAIT) if share >= WAIT else seen(metric, 100 * share)


def seen(metric: str, value: Plain) -> Evidence | None:
    """Return evidence for a fact that has no threshold; None when there is no value."""
    if value is None:
        return None
    return Evidence(metric, round(value, 4) if isinstance(value, float) else value)


def beside(metric: str, value: float | None, threshold: float) -> Evidence | None:
    """Return evidence beside a threshold, on whichever side it lies."""
    if value is None:
        return None
    side: Side = "above" if value >= threshold else "below"
    return Evidence(metric, round(value, 4), threshold, side)


def lower(confidence: Confidence) -> Confidence:
    """Return the next lower confidence."""
    return _LOWER[confidence]


_LEAST = 0.5  # of the time for which the server must have answered


class ServedTime:
    """The answers of a server in the samples of a load, each with the seconds that it stands for."""

    def __init__(self, answers: Sequence[tuple[Server, float]]) -> None:
        self._answers = answers
        self.last = answers[-1][0]
        self._seconds = sum(weight for _, weight in answers)

    def mean(self, key: str) -> float | None:
        """Return the mean of a metric over the time in which it is known."""
        known = [(value, weight) for one, weight in self._answers if isinstance(value := one.get(key), (int, float))]
        seconds = sum(weight for _, weight in known)
        return sum(value * weight for value, weight in known) / seconds if seconds > 0 else None

    def share(self, key: str, least: float) -> float:
        """Return the part of the time in which a metric was at least this."""
        there = sum(
            weight
            for one, weight in self._answers
            if isinstance(value := one.get(key), (int, float)) and value >= least
        )
        return there / self._seconds if self._seconds > 0 else 0.0


def served(load: Load) -> ServedTime | None:
    """Return what the server on the GPU of a load said; None without one that answered for most of the time."""
    gpu = load.gpu
    answers = [
        (server, gpu.weights[at])
        for at in range(load.first, load.end)
        if (server := gpu.rows[at].server) is not None and (server.running is not None or server.waiting is not None)
    ]
    whole = sum(gpu.weights[load.first : load.end])
    return ServedTime(answers) if answers and sum(weight for _, weight in answers) >= _LEAST * whole else None
