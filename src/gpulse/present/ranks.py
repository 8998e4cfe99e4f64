"""The ranks of a job in words: one row each, and what the slowest one costs."""

from __future__ import annotations

from .quantities import DASH, energy_text, quantity_text, rate_text, seconds_text
from .text import aligned, clean, without_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..analysis.ranks import RankSummary, Straggler

_COLUMNS: tuple[tuple[str, Callable[[RankSummary], str]], ...] = (
    ("steps/s", lambda rank: rate_text(rank.steps / rank.seconds) if rank.steps and rank.seconds else DASH),
    ("step p50", lambda rank: DASH if rank.step_p50 is None else seconds_text(rank.step_p50)),
    ("p95", lambda rank: DASH if rank.step_p95 is None else seconds_text(rank.step_p95)),
    ("max", lambda rank: DASH if rank.step_max is None else seconds_text(rank.step_max)),
    ("wait", lambda rank: f"{100 * rank.waited / rank.seconds:.0f} %" if rank.waited and rank.seconds else DASH),
    ("SM", lambda rank: quantity_text("%", rank.busy)),
    ("peak", lambda rank: quantity_text("B", rank.memory)),
    ("energy", lambda rank: energy_text(rank.energy)),
)


def rank_lines(ranks: Sequence[RankSummary], slowest: Straggler | None, world: int) -> list[str]:
    """Return the table of all ranks, without columns in which nobody has a value, and a sentence about the slowest."""
    hosts = len({rank.host for rank in ranks}) > 1
    rows = [("rank", *(title for title, _ in _COLUMNS))]
    for rank in ranks:
        name = f"{rank.rank} ({clean(rank.host)})" if hosts else str(rank.rank)
        rows.append((name, *(cell(rank) for _, cell in _COLUMNS)))
    lines = aligned(without_empty(rows), lead="  ")
    if missing := world - len(ranks):
        lines.append(f"  {missing} of {world} ranks left no figures: they have no Monitor, or run on another machine.")
    return lines if slowest is None else [*lines, f"  → {straggler_text(slowest)}"]


def straggler_text(found: Straggler) -> str:
    """Return one sentence: Rank 3 is 12 % slower: the others wait 0.8 s per step for it. It waits …"""
    cost, share = seconds_text(found.excess), f"{100 * found.excess / found.step:.0f} % of the time"
    what = (
        f"the others wait {cost} per step for it ({share})" if found.together else f"it needs {cost} more for each step"
    )
    return f"Rank {found.rank.rank} is {found.percent:.0f} % slower: {what}.{_reason(found)}"


def _reason(found: Straggler) -> str:
    if found.reason == "throttled":
        return " Its GPU is throttled."
    if found.own is None or found.others is None:
        return ""
    if found.reason == "data":
        return f" It waits {seconds_text(found.own)} per step for data, the others {seconds_text(found.others)}."
    if found.reason == "clock":
        return f" Its GPU runs at {found.own:.0f} MHz, those of the others at {found.others:.0f} MHz."
    return (
        f" Its GPU computes {found.own:.0f} % of the time, those of the others {found.others:.0f} %: it has more to do."
    )
