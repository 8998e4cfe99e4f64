"""A series over its whole time: mean by time, least and most."""

from __future__ import annotations

from ...analysis.series import WeightedSeries
from ...analysis.summary import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.history import HistorySeries


def over_time(series: HistorySeries | None) -> Stats | None:
    """Return the figures of a series; None when it has no value at all."""
    if series is None:
        return None
    weighted = WeightedSeries()
    for mean, seconds in zip(series.mean, series.seconds, strict=True):
        if mean == mean:
            weighted.add(mean, seconds)
    if not weighted.seconds:
        return None
    weighted.lowest = min(value for value in series.min if value == value)
    weighted.highest = max(value for value in series.max if value == value)
    return Stats.of(weighted)
