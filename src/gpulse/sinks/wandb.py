"""Log samples to Weights & Biases, in addition to what the program logs and without changing its steps."""

from __future__ import annotations

from ..errors import GpulseError
from .base import Sink
from .packages import load
from .points import Means, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert, Sample


class WandbSink(Sink):
    """Logs to `run`, or to the run that is active when the monitor starts; the program finishes the run.

    The curves are under `prefix`, with prefix/elapsed in seconds as x axis. W&B has one row per step, and only finishing a row
    advances run.step. Samples therefore go into the row that the program's next log() finishes, as their mean since the
    previous row, and those after its last log() into the row that finish() writes. If the program does not call log(), use
    `commit`: then every sample is its own row and advances run.step by one. An alert is an alert of the run.
    The lines of code that kept the GPU waiting are gpulse/code in the summary of the run.
    """

    name = "wandb"

    def __init__(self, run: Any = None, prefix: str = "gpulse", *, commit: bool = False) -> None:
        self._given = run
        self._prefix = prefix
        self._commit = commit
        self._run: Any = None
        self._row = -1
        self._means = Means()

    def open(self) -> None:
        run = load("wandb", "wandb").run if self._given is None else self._given
        if run is None:
            raise GpulseError("no W&B run is active.", "Call wandb.init() first, or pass WandbSink(run).")
        run.define_metric(under(self._prefix, "*"), step_metric=under(self._prefix, "elapsed"))
        self._run, self._row = run, -1

    def write(self, sample: Sample) -> None:
        if self._run is None:
            return
        if self._commit:
            self._means = Means()
        elif (row := self._run.step) != self._row:  # asks W&B's own process, which takes 0.4 ms
            self._row, self._means = row, Means()
        self._means.add(sample.values)
        values = {under(self._prefix, tag): value for tag, value in self._means.values().items()}
        values[under(self._prefix, "elapsed")] = sample.elapsed
        self._run.log(values, commit=self._commit)
        for alert in sample.alerts:
            self._alert(alert)

    def _alert(self, alert: Alert) -> None:
        """Raise an alert of the run, which W&B sends by mail or Slack if its user wants that."""
        if alert.state == "fire":
            level = load("wandb", "wandb").AlertLevel
            grave = level.ERROR if alert.severity == "critical" else level.WARN
            self._run.alert(title=f"gpulse: {alert.rule}", text=alert.text, level=grave, wait_duration=0)

    def summarize(self, text: str) -> None:
        if self._run is not None:
            self._run.summary[under(self._prefix, "code")] = text

    def close(self) -> None:
        self._run = None
