"""Series of a chart in slots of equal time, filled as samples arrive."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from .history import History

    Slot: TypeAlias = tuple[float, float, float]

_TRACES = 256  # kept at once: a span or a size that is gone is made anew when it comes back
_LATE = 2.5  # times the usual step after which a sample is missing, not late
_NAN, _NEVER = float("nan"), float("-inf")


class ChartTrace:
    """Lowest, highest and last value of a series in slots of equal time, filled as samples arrive; each point is read once.

    A slot between two samples that came one after the other holds the value of the first: samples are never exactly evenly spaced.
    """

    def __init__(self, gpus: tuple[int, ...], key: str, slot: float) -> None:
        self.gpus = gpus
        self.key = key
        self.slot = slot
        self._since = _NEVER
        self._clear()

    def _clear(self) -> None:
        self._slots: dict[int, Slot] = {}
        self._read, self._step, self._last = _NEVER, 0.0, _NAN

    def follow(self, history: History, since: float, interval: float) -> None:
        """Take in the points that came since the last call; all from `since` on are then in."""
        if since < self._since - self.slot:  # looking further back than ever before: from the beginning
            self._clear()
            since = _NEVER
        if self._read == _NEVER:
            self._since = since
        times: Sequence[float] = ()
        series = []
        for gpu in self.gpus:
            times, values = history.series(gpu, self.key, max(since, self._read))
            series.append(values)
        for moment, row in zip(times, zip(*series, strict=False), strict=False):
            if moment > self._read:
                self._add(moment, mean(row), interval)

    def _add(self, moment: float, value: float, interval: float) -> None:
        at, step, last = int(moment // self.slot), moment - self._read, self._last
        if last == last and step <= _LATE * max(interval, self._step):
            for between in range(int(self._read // self.slot) + 1, at):
                self._slots[between] = (last, last, last)
        if value == value:
            low, high, _ = self._slots.get(at, (value, value, value))
            self._slots[at] = (min(low, value), max(high, value), value)
        self._read, self._step, self._last = moment, 0.0 if step == float("inf") else step, value

    def slots(self, end: float, count: int) -> list[Slot | None]:
        """Return lowest, highest and last of the last `count` slots up to a moment; None is a hole."""
        last = int(end // self.slot)
        found = [self._slots.get(at) for at in range(last - count + 1, last + 1)]
        if len(self._slots) > 8 * count + 64:
            self._slots = {at: value for at, value in self._slots.items() if at > last - 4 * count}
            self._since = (last - 4 * count + 1) * self.slot
        return found


class _Memory:
    """Traces of the history on screen, by what they show; another history starts anew."""

    def __init__(self) -> None:
        self.history: History | None = None
        self.turns = 0
        self.traces: dict[tuple[tuple[int, ...], str, float], ChartTrace] = {}

    def trace(self, history: History, gpus: tuple[int, ...], key: str, slot: float) -> ChartTrace:
        if self.history is not history or self.turns != history.turns or len(self.traces) > _TRACES:
            self.history, self.turns = history, history.turns
            self.traces = {}
        return self.traces.setdefault((gpus, key, slot), ChartTrace(gpus, key, slot))


traces = _Memory()


def mean(values: Sequence[float]) -> float:
    """Return the mean of the known values; NaN if there is none."""
    if not values:
        return _NAN
    total = sum(values)
    if total == total:
        return total / len(values)
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else _NAN
