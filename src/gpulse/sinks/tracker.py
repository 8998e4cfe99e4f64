"""What sinks for experiment trackers have in common: they log to a run that the program starts and ends."""

from __future__ import annotations

from .base import Sink
from .points import Points, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert, Sample
    from .points import Axis, Point


class TrackerSink(Sink):
    """Base of these sinks: a subclass finds the active run, logs values at a step, and reports alerts if the tracker can.

    Once the program has ended its run, samples are dropped silently: ending it before the monitor is a normal order.
    """

    def __init__(self, run: Any, step: Axis, prefix: str) -> None:
        self._given = run
        self._prefix = prefix
        self._points = Points(step)
        self._run: Any = None

    def active_run(self) -> Any:
        """Return the run that is active in this thread; raise GpulseError with what to do if there is none."""
        raise NotImplementedError

    def runs(self, run: Any) -> bool:
        """Return whether a run still takes values."""
        return True

    def log(self, run: Any, values: dict[str, float], step: int) -> None:
        """Log values by name, including the prefix."""
        raise NotImplementedError

    def report(self, run: Any, alert: Alert) -> None:
        """Report an alert that fired."""

    def note(self, run: Any, text: str) -> None:
        """Add a text in Markdown to the run, if the tracker has texts."""

    def open(self) -> None:
        self._run = self.active_run() if self._given is None else self._given
        self._points.resume()

    def write(self, sample: Sample) -> None:
        self._put(self._points.add(sample))
        for alert in sample.alerts:
            if alert.state == "fire" and self._run is not None and self.runs(self._run):
                self.report(self._run, alert)

    def summarize(self, text: str) -> None:
        if self._run is not None and self.runs(self._run):
            self.note(self._run, text)

    def close(self) -> None:
        if self._run is not None:
            try:
                self._put(self._points.finish())
            finally:
                self._run = None

    def _put(self, point: Point | None) -> None:
        if point is not None and self._run is not None and self.runs(self._run):
            self.log(self._run, {under(self._prefix, tag): value for tag, value in point.values.items()}, point.step)
