"""Log samples to a Comet experiment."""

from __future__ import annotations

from ..errors import GpulseError
from .packages import load
from .tracker import TrackerSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert


class CometSink(TrackerSink):
    """Logs to `experiment`, or to the one that is running when the monitor starts; the program ends it.

    Comet has one current step for all metrics, and giving a step would change the program's. Values therefore have their time and the
    step that the program has reached: choose time as x axis. An alert is a text of the experiment, and so are the lines of
    code that kept the GPU waiting.
    """

    name = "comet"

    def __init__(self, experiment: Any = None, *, prefix: str = "gpulse") -> None:
        super().__init__(experiment, "seconds", prefix)

    def active_run(self) -> Any:
        experiment = load("comet_ml", "comet-ml").get_running_experiment()
        if experiment is None:
            raise GpulseError(
                "no Comet experiment is running.", "Call comet_ml.start() first, or pass CometSink(experiment)."
            )
        return experiment

    def runs(self, run: Any) -> bool:
        return bool(run.alive)

    def log(self, run: Any, values: dict[str, float], step: int) -> None:
        run.log_metrics(values, include_context=False)  # a context would add train/ or validate/ to the names

    def note(self, run: Any, text: str) -> None:
        run.log_text(text, metadata={"gpulse": "code"})

    def report(self, run: Any, alert: Alert) -> None:
        run.log_text(alert.text, metadata={"gpulse": alert.rule, "severity": alert.severity})
