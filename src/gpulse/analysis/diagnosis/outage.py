"""Outages: since when a GPU is lost or does not respond. It began with the first sample in that state, on every surface."""

from __future__ import annotations

from itertools import groupby

from ...model.verdict import Evidence
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.verdict import Verdict
    from .window import GpuWindow

METRICS = {"lost": "state_lost", "driver_unresponsive": "state_timeout"}  # the evidence of each verdict


class Outage(Value):
    """The time in which a GPU was in one state. `end` is None while it lasts: then the times are those of the last spell.

    `seconds` is how long it lasted until the last sample, or in all spells once it is over.
    """

    start: float
    end: float | None
    seconds: float


def outage_of(gpu: GpuWindow, state: str) -> Outage | None:
    """Return the outage that a window shows, also as far as it began before the window; None without one."""
    spells: list[tuple[float, float | None]] = []
    for silent, group in groupby(range(len(gpu)), lambda at: gpu.rows[at].state == state):
        rows = [*group] if silent else []
        if rows:
            first, after = gpu.rows[rows[0]], rows[-1] + 1
            began = first.time if first.since is None else min(first.since, first.time)
            spells.append((began, gpu.times[after] if after < len(gpu) else None))
    return whole_outage(spells, gpu.times[-1]) if spells else None


def whole_outage(spells: list[tuple[float, float | None]], now: float) -> Outage:
    """Return one outage of spells in the order of time, of which only the last one may go on."""
    start, end = spells[-1]
    if end is None:
        return Outage(start, None, max(0.0, now - start))
    return Outage(spells[0][0], end, sum((until or since) - since for since, until in spells))


def aged(verdict: Verdict, now: float) -> Verdict:
    """Return a verdict of a GPU that is still lost or silent as it is `now`: the outage has gone on since the judgement."""
    also = [aged(one, now) for one in verdict.also]
    start = verdict.values.get("start_time")
    if verdict.key in METRICS and isinstance(start, (int, float)) and verdict.values.get("end_time") is None:
        verdict = with_seconds(verdict, max(0.0, now - start)).replace(end=now)
    return verdict.replace(also=also) if also else verdict


def with_seconds(verdict: Verdict, seconds: float) -> Verdict:
    """Return the verdict of an outage with another duration."""
    metric = METRICS[verdict.key]
    others = [one for one in verdict.evidence if one.metric != metric]
    return verdict.replace(evidence=[Evidence(metric, round(seconds, 4)), *others])
