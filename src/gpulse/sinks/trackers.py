"""Sinks for experiment trackers: they log to a run that the program starts and ends."""

from __future__ import annotations

from ..errors import GpulseError
from .base import Means, Points, Sink, load, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Alert, Axis, Point, Sample

_ENOUGH = 500  # metrics to collect before a call of MLflow
_MOST = 1000  # its limit per call
_LEVELS = {"critical": 40, "warn": 30}  # of the module logging


class TrackerSink(Sink):
    """Base of these sinks: a subclass finds the active run, logs values at a step, and reports alerts and texts if the tracker can.

    Once the program has ended its run, samples are dropped silently: ending it before the monitor is a normal order.
    `no_run` is what to say, and to do, if no run is active.
    """

    no_run = ("", "")

    def __init__(self, run: Any = None, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        self._given = run
        self._prefix = prefix
        self._points = Points(step)
        self._run: Any = None

    def active_run(self) -> Any:
        """Return the run that is active in this thread, or None."""
        raise NotImplementedError

    def runs(self, run: Any) -> bool:
        """Return whether a run still takes values."""
        return True

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        """Log the values of a point by name, including the prefix."""
        raise NotImplementedError

    def report(self, run: Any, alert: Alert) -> None:
        """Report an alert that fired."""

    def note(self, run: Any, text: str) -> None:
        """Add a text in Markdown to the run, if the tracker has texts."""

    def open(self) -> None:
        run = self.active_run() if self._given is None else self._given
        if run is None:
            raise GpulseError(*self.no_run)
        self._run = run
        self._points.resume()

    def write(self, sample: Sample) -> None:
        self._put(self._points.add(sample))
        self._report_all(sample)

    def summarize(self, text: str) -> None:
        if self._takes():
            self.note(self._run, text)

    def close(self) -> None:
        if self._run is not None:
            try:
                self._put(self._points.finish())
                self.flush()
            finally:
                self._run = None

    def _takes(self) -> bool:
        return self._run is not None and self.runs(self._run)

    def _put(self, point: Point | None) -> None:
        if point is not None and self._takes():
            self.log(self._run, self._named(point.values), point)

    def _named(self, values: dict[str, float]) -> dict[str, float]:
        return {under(self._prefix, tag): value for tag, value in values.items()}

    def _report_all(self, sample: Sample) -> None:
        for alert in sample.alerts:
            if alert.state == "fire" and self._takes():
                self.report(self._run, alert)


def _raise_alert(run: Any, alert: Alert, package: str, **more: Any) -> None:
    """Raise an alert of the run, in trackers that have those and send or print them."""
    level = load(package, package).AlertLevel
    grave = level.ERROR if alert.severity == "critical" else level.WARN
    run.alert(title=f"gpulse: {alert.rule}", text=alert.text, level=grave, **more)


class AimSink(TrackerSink):
    """Logs to an `aim.Run`, which has to be passed because Aim has no active run; the program closes it.

    Steps are separate for each name, so the program's do not change: `step` "seconds" counts seconds elapsed, "train" the program's steps.
    An alert is a log record of the run.
    """

    name = "aim"

    def __init__(self, run: Any, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(run, step, prefix)

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        for name, value in values.items():
            run.track(value, name=name, step=point.step)

    def report(self, run: Any, alert: Alert) -> None:
        (run.log_error if alert.severity == "critical" else run.log_warning)(f"gpulse: {alert.text}")


class ClearmlSink(TrackerSink):
    """Logs to `task`, or to the current task; the program closes it. Each tag is a plot of its own.

    `step` "seconds" counts seconds elapsed as iterations, "train" the program's steps, which is better for a task that will be continued:
    ClearML goes on from its largest iteration. An alert is a line of the task's console log, which also
    ends with the lines of code that kept the GPU waiting.
    """

    name = "clearml"
    no_run = ("no ClearML task is active.", "Call clearml.Task.init() first, or pass ClearmlSink(task).")

    def __init__(self, task: Any = None, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(task, step, prefix)

    def active_run(self) -> Any:
        return load("clearml", "clearml").Task.current_task()

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        logger = run.get_logger()
        for name, value in values.items():
            logger.report_scalar(name, name, value, point.step)

    def note(self, run: Any, text: str) -> None:
        run.get_logger().report_text(f"gpulse:\n{text}", print_console=False)

    def report(self, run: Any, alert: Alert) -> None:
        level = _LEVELS.get(alert.severity, 20)
        run.get_logger().report_text(f"gpulse: {alert.text}", level=level, print_console=False)


class CometSink(TrackerSink):
    """Logs to `experiment`, or to the one that is running when the monitor starts; the program ends it.

    Comet has one current step for all metrics, and giving a step would change the program's. Values therefore have their time and the
    step that the program has reached: choose time as x axis. An alert is a text of the experiment, and so are the lines of
    code that kept the GPU waiting.
    """

    name = "comet"
    no_run = ("no Comet experiment is running.", "Call comet_ml.start() first, or pass CometSink(experiment).")

    def __init__(self, experiment: Any = None, *, prefix: str = "gpulse") -> None:
        super().__init__(experiment, "seconds", prefix)

    def active_run(self) -> Any:
        return load("comet_ml", "comet-ml").get_running_experiment()

    def runs(self, run: Any) -> bool:
        return bool(run.alive)

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        run.log_metrics(values, include_context=False)  # a context would add train/ or validate/ to the names

    def note(self, run: Any, text: str) -> None:
        run.log_text(text, metadata={"gpulse": "code"})

    def report(self, run: Any, alert: Alert) -> None:
        run.log_text(alert.text, metadata={"gpulse": alert.rule, "severity": alert.severity})


class SwanlabSink(TrackerSink):
    """Logs to `run`, or to the active run; the program finishes it. Steps are separate for each name, so the program's do not change.

    `step` "seconds" counts seconds elapsed, "train" the program's steps.
    """

    name = "swanlab"
    no_run = ("no SwanLab run is active.", "Call swanlab.init() first, or pass SwanlabSink(run).")

    def __init__(self, run: Any = None, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(run, step, prefix)

    def active_run(self) -> Any:
        try:
            return load("swanlab", "swanlab").get_run()
        except RuntimeError:  # older versions return None
            return None

    def runs(self, run: Any) -> bool:
        return bool(getattr(run, "alive", True))

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        run.log(values, step=point.step)


class TrackioSink(TrackerSink):
    """Logs to `run`, or to the run that is active when the monitor starts; the program finishes it.

    Values are system metrics of the run, which have times instead of steps. An alert is an alert of the run, which Trackio also prints.
    """

    name = "trackio"
    no_run = ("no Trackio run is active.", "Call trackio.init() first, or pass TrackioSink(run).")

    def __init__(self, run: Any = None, *, prefix: str = "gpulse") -> None:
        super().__init__(run, "seconds", prefix)

    def active_run(self) -> Any:
        load("trackio", "trackio")
        return load("trackio.context_vars", "trackio").current_run.get()

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        run.log_system(values)

    def report(self, run: Any, alert: Alert) -> None:
        _raise_alert(run, alert, "trackio")


class MlflowSink(TrackerSink):
    """Logs to the run with `run_id`, or to the one active in the thread that starts the monitor; the program ends the run.

    `step` "seconds" counts seconds elapsed, or samples if they come more often; "train" counts the program's steps, and samples
    of one step are averaged to one point.
    Characters that MLflow does not allow in a name become an underscore. A call that fails loses its points.
    The lines of code that kept the GPU waiting are the artifact gpulse/code.md.
    """

    name = "mlflow"
    no_run = ("no MLflow run is active.", "Call mlflow.start_run() first, or pass MlflowSink(run_id).")

    def __init__(self, run_id: str | None = None, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        super().__init__(run_id, step, prefix)
        self._names: dict[str, str] = {}
        self._waiting: list[Any] = []
        self._metric: Any = None
        self._client: Any = None

    def active_run(self) -> Any:
        run = load(
            "mlflow", "mlflow"
        ).active_run()  # of this thread: another has none, and logging would start a new one
        return None if run is None else run.info.run_id

    def open(self) -> None:
        mlflow = load("mlflow", "mlflow")
        super().open()
        self._metric = load("mlflow.entities", "mlflow").Metric
        self._client = mlflow.MlflowClient()

    def log(self, run: Any, values: dict[str, float], point: Point) -> None:
        milliseconds = round(point.time * 1000)
        for name, value in values.items():
            allowed = self._names.get(name) or self._names.setdefault(name, _allowed(name))
            self._waiting.append(self._metric(allowed, value, milliseconds, point.step))
        if len(self._waiting) >= _ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Write every point except the one still being collected."""
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            self._client.log_batch(self._run, metrics=batch, synchronous=True)  # blocks only this sink's thread

    def note(self, run: Any, text: str) -> None:
        self._client.log_text(run, text, under(self._prefix, "code.md"))


def _allowed(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "/_.- :" else "_" for letter in name)


class WandbSink(TrackerSink):
    """Logs to `run`, or to the run that is active when the monitor starts; the program finishes the run.

    The curves are under `prefix`, with prefix/elapsed in seconds as x axis. W&B has one row per step, and only finishing a row
    advances run.step. Samples therefore go into the row that the program's next log() finishes, as their mean since the
    previous row, and those after its last log() into the row that finish() writes. If the program does not call log(), use
    `commit`: then every sample is its own row and advances run.step by one. An alert is an alert of the run.
    The lines of code that kept the GPU waiting are gpulse/code in the summary of the run.
    """

    name = "wandb"
    no_run = ("no W&B run is active.", "Call wandb.init() first, or pass WandbSink(run).")

    def __init__(self, run: Any = None, prefix: str = "gpulse", *, commit: bool = False) -> None:
        super().__init__(run, "seconds", prefix)
        self._commit = commit
        self._row = -1
        self._means = Means()

    def active_run(self) -> Any:
        return load("wandb", "wandb").run

    def open(self) -> None:
        super().open()
        self._run.define_metric(under(self._prefix, "*"), step_metric=under(self._prefix, "elapsed"))
        self._row = -1

    def write(self, sample: Sample) -> None:
        if self._run is None:
            return
        if self._commit:
            self._means = Means()
        elif (row := self._run.step) != self._row:  # asks W&B's own process, which takes 0.4 ms
            self._row, self._means = row, Means()
        self._means.add(sample.values)
        self._run.log(self._named(self._means.values() | {"elapsed": sample.elapsed}), commit=self._commit)
        self._report_all(sample)

    def report(self, run: Any, alert: Alert) -> None:
        _raise_alert(run, alert, "wandb", wait_duration=0)  # W&B sends it by mail or Slack if its user wants that

    def note(self, run: Any, text: str) -> None:
        run.summary[under(self._prefix, "code")] = text
