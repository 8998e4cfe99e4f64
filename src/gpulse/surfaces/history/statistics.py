"""A series over its whole time: mean by time, least and most."""

from __future__ import annotations

from ...analysis.summary import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.history import HistorySeries


def over_time(series: HistorySeries | None) -> Stats | None:
    """Return the figures of a series; None when it has no value at all."""
    if series is None:
        return None
    means = [value for value in series.mean if value == value]
    if not means:
        return None
    ordered = sorted(means)
    return Stats(
        sum(means) / len(means),
        ordered[len(ordered) // 2],
        ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
        max(value for value in series.max if value == value),
        min(value for value in series.min if value == value),
    )
