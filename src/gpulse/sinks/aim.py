"""Log samples to an Aim run."""

from __future__ import annotations

from .tracker import TrackerSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert
    from .points import Axis


class AimSink(TrackerSink):
    """Logs to an `aim.Run`, which has to be passed because Aim has no active run; the program closes it.

    Steps are separate for each name, so the program's do not change: `step` "seconds" counts seconds elapsed, "train" the program's steps.
    An alert is a log record of the run.
    """

    name = "aim"

    def __init__(self, run: Any, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(run, step, prefix)

    def log(self, run: Any, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            run.track(value, name=name, step=step)

    def report(self, run: Any, alert: Alert) -> None:
        (run.log_error if alert.severity == "critical" else run.log_warning)(f"gpulse: {alert.text}")
