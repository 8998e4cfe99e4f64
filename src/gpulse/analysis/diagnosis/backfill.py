"""Rates of slow counters, put at the samples they are the rates of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_REPEATED = 5.5  # seconds for which an unchanged counter may not have been read again


def backfilled(
    counts: Sequence[float | None], times: Sequence[float], rates: Sequence[float | None]
) -> list[float | None]:
    """Return `rates` (percent) with the growth of a counter between two readings at all samples between them.

    A slow rate covers the seconds before it and is repeated in the samples after it. Where the counter is unknown, `rates` stay.
    """
    found = list(rates)
    last: int | None = None
    for at, count in enumerate(counts):
        if count is None:
            last = None
        elif last is None or count < (counts[last] or 0.0):
            last = at
        elif count != counts[last]:
            elapsed = times[at] - times[last]
            rate = 100.0 * (count - (counts[last] or 0.0)) / elapsed if elapsed > 0 else None
            found[last + 1 : at + 1] = [rate] * (at - last)
            last = at
    if last is not None and times and times[-1] - times[last] > _REPEATED:
        found[last + 1 :] = [0.0] * (len(found) - last - 1)
    return found
