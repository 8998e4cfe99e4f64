"""Log samples to a Trackio run, as its system metrics."""

from __future__ import annotations

from ..errors import GpulseError
from .packages import load
from .tracker import TrackerSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert


class TrackioSink(TrackerSink):
    """Logs to `run`, or to the run that is active when the monitor starts; the program finishes it.

    Values are system metrics of the run, which have times instead of steps. An alert is an alert of the run, which Trackio also prints.
    """

    name = "trackio"

    def __init__(self, run: Any = None, *, prefix: str = "gpulse") -> None:
        super().__init__(run, "seconds", prefix)

    def active_run(self) -> Any:
        load("trackio", "trackio")
        run = load("trackio.context_vars", "trackio").current_run.get()
        if run is None:
            raise GpulseError("no Trackio run is active.", "Call trackio.init() first, or pass TrackioSink(run).")
        return run

    def log(self, run: Any, values: dict[str, float], step: int) -> None:
        run.log_system(values)

    def report(self, run: Any, alert: Alert) -> None:
        level = load("trackio", "trackio").AlertLevel
        grave = level.ERROR if alert.severity == "critical" else level.WARN
        run.alert(title=f"gpulse: {alert.rule}", text=alert.text, level=grave)
