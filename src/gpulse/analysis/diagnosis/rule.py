"""Diagnosis rules: one verdict each, with what docs and ranking need, the function that finds it, and its evidence."""

from __future__ import annotations

from ...model.verdict import Evidence, Verdict
from ...value import Value
from .span import Span, holder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal, TypeAlias

    from ...model.catalog import Server
    from ...model.verdict import Confidence, Plain, Side
    from .window import ProcessSamples

    Group: TypeAlias = Literal["fault", "ownership", "limit", "feeding", "device", "rest"]
    Scope: TypeAlias = Literal["window", "phase", "job"]

__all__ = [
    "GROUPS", "WAIT", "DiagnosisRule", "Evidence", "ServedTime", "Span", "Verdict", "above", "below", "beside", "facts", "lower",
    "median", "percent", "seen", "served", "sure", "told",
]  # fmt: skip
GROUPS: tuple[Group, ...] = ("fault", "ownership", "limit", "feeding", "device", "rest")
WAIT = 0.18  # of the time from which a wait is told as what limits the GPU
_RARE = 1.5  # seconds between samples
_ANSWERED = 0.5  # of the time for which a model server must have answered
_FIGURES = ("busy", "cpu_main", "cpu_tree")  # of a span, beside the means of metrics


class DiagnosisRule(Value):
    """One verdict.

    `needs` lists the metrics it cannot do without, `signature` says when it fires, `blind` what it cannot see, `sources`
    where its thresholds come from; all of it is printed in docs/diagnosis.md. `advice` holds keys of texts. `part` is the part of the
    time budget that the rule explains: it is asked when that part is the largest that the GPU waits for.
    """

    key: str
    group: Group
    scope: Scope
    judge: Callable[[Span], Verdict | None]
    needs: tuple[str, ...]
    signature: str
    blind: str
    sources: tuple[str, ...]
    advice: tuple[str, ...] = ()
    part: str = ""

    def found(
        self,
        span: Span,
        confidence: Confidence,
        evidence: Iterable[Evidence | None],
        *,
        advice: Sequence[str] | None = None,
        processes: Iterable[ProcessSamples] | None = None,
        share: float = 1.0,
        **values: Plain,
    ) -> Verdict:
        """Return the verdict about a span, by default with the rule's advice and the main process; evidence that is None is left out."""
        if processes is None:
            processes = () if span.main is None else (span.main,)
        return Verdict(
            self.key,
            confidence,
            [one for one in evidence if one is not None],
            advice=self.advice if advice is None else advice,
            index=span.gpu.index,
            uuid=span.gpu.uuid,
            processes=tuple(map(holder_of, processes)),
            start=span.start_time,
            end=span.end_time,
            share=share,
            values=values,
            instance=span.gpu.instance,
        )


def sure(span: Span, part: str) -> Confidence:
    """Return how sure a wait is: by its share of the time, the number of samples, and whether activity is counted or guessed."""
    share, samples = span.parts.get(part, 0.0), span.end - span.first
    if not span.traced and span.interval > _RARE:
        return "low"  # what happens between two samples is not known
    if share >= 0.4 and samples >= 10 and span.seconds >= 5 and span.detailed:
        return "high"
    return "medium" if share >= 0.2 and samples >= 5 else "low"


def lower(confidence: Confidence) -> Confidence:
    """Return the next lower confidence."""
    return "medium" if confidence == "high" else "low"


def above(metric: str, value: float | None, threshold: float, side: Side = "above") -> Evidence | None:
    """Return evidence for a value at or above its threshold; None when there is no value."""
    return None if value is None else Evidence(metric, round(value, 4), threshold, side)


def below(metric: str, value: float | None, threshold: float) -> Evidence | None:
    """Return evidence for a value below its threshold; None when there is no value."""
    return above(metric, value, threshold, "below")


def beside(metric: str, value: float | None, threshold: float) -> Evidence | None:
    """Return evidence beside a threshold, on whichever side it lies."""
    return above(metric, value, threshold, "below" if value is not None and value < threshold else "above")


def told(metric: str, share: float) -> Evidence | None:
    """Return evidence for the share of the time (0–1) that a wait takes; a smaller one is told where several waits add up."""
    return above(metric, 100 * share, 100 * WAIT) if share >= WAIT else seen(metric, 100 * share)


def seen(metric: str, value: Plain) -> Evidence | None:
    """Return evidence for a fact that has no threshold; None when there is no value."""
    if value is None:
        return None
    return Evidence(metric, round(value, 4) if isinstance(value, float) else value)


def facts(of: Span | ServedTime, *names: str) -> list[Evidence | None]:
    """Return evidence without thresholds for means of metrics, and for figures of a span."""
    return [seen(name, getattr(of, name) if name in _FIGURES else of.mean(name)) for name in names]


def percent(share: float | None) -> float | None:
    """Return a share (0–1) in percent."""
    return None if share is None else 100 * share


def median(values: Iterable[float | None]) -> float | None:
    """Return the middle of the values that are there, of two the higher."""
    known = sorted(value for value in values if value is not None)
    return known[len(known) // 2] if known else None


class ServedTime:
    """The answers of a model server in the samples of a span, each with the seconds that it stands for."""

    def __init__(self, answers: Sequence[tuple[Server, float]]) -> None:
        self._answers = answers
        self.last = answers[-1][0]
        self._seconds = sum(weight for _, weight in answers)

    def _known(self, key: str) -> list[tuple[float, float]]:
        return [(value, weight) for one, weight in self._answers if isinstance(value := one.get(key), (int, float))]

    def mean(self, key: str) -> float | None:
        """Return the mean of a metric over the time in which it is known."""
        known = self._known(key)
        seconds = sum(weight for _, weight in known)
        return sum(value * weight for value, weight in known) / seconds if seconds > 0 else None

    def share(self, key: str, least: float) -> float:
        """Return the part of the time in which a metric was at least this."""
        there = sum(weight for value, weight in self._known(key) if value >= least)
        return there / self._seconds if self._seconds > 0 else 0.0


def served(span: Span) -> ServedTime | None:
    """Return what the model server on the GPU of a span said; None without one that answered for most of the time."""
    rows = span.gpu.rows[span.first : span.end]
    answers = [
        (server, weight)
        for row, weight in zip(rows, span.weights, strict=True)
        if (server := row.server) is not None and (server.running is not None or server.waiting is not None)
    ]
    answered = sum(weight for _, weight in answers)
    return ServedTime(answers) if answers and answered >= _ANSWERED * span.seconds else None
