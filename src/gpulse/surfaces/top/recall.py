"""Values and events from the history, so that charts and the event line do not start empty."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...model.event import Event

_FINE, _COARSE = 900.0, 43_200.0  # seconds back: one point per second, then one per 30 s up to the longest chart
_POINTS = 1400  # of the coarse part
_EVENTS = 6 * 3600.0  # seconds back for the event line


class Recall:
    """Reads the history in its own thread and calls `done` there when it is complete.

    `series` are runs of points, oldest first: times, and values by UUID and metric. Empty if there is no history.
    """

    def __init__(self, keys: Sequence[str], done: Callable[[], None], path: str | None = None) -> None:
        self.series: list[tuple[Sequence[float], dict[tuple[str, str], Sequence[float]]]] = []
        self.events: list[Event] = []
        self.ready = False
        self._keys = tuple(keys)
        self._done = done
        self._path = path
        threading.Thread(target=self._read, name="gpulse-recall", daemon=True).start()

    def _read(self) -> None:
        from ...errors import GpulseError
        from ...store.history import HistoryReader

        now = time.time()
        try:
            with HistoryReader(self._path) as reader:
                for start, end, points in ((now - _COARSE, now - _FINE, _POINTS), (now - _FINE, now, int(_FINE))):
                    found = reader.series(self._keys, None, start, end, points)
                    values: dict[tuple[str, str], Sequence[float]] = {(one.uuid, one.key): one.mean for one in found}
                    if found:
                        self.series.append((found[0].times, values))
                self.events = reader.events(now - _EVENTS, now)
        except (GpulseError, OSError):
            return  # no readable history: the screen starts empty
        self.ready = True
        self._done()
