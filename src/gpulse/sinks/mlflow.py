"""Log samples to an MLflow run, in batches."""

from __future__ import annotations

from ..errors import GpulseError
from .base import Sink
from .packages import load
from .points import Points, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .base import Sample
    from .points import Axis, Point

_ENOUGH = 500  # metrics to collect before a call
_MOST = 1000  # limit of MLflow per call


class MlflowSink(Sink):
    """Logs to the run with `run_id`, or to the one active in the thread that starts the monitor; the program ends the run.

    `step` "seconds" counts seconds elapsed, or samples if they come more often; "train" counts the program's steps, and samples
    of one step are averaged to one point.
    Characters that MLflow does not allow in a name become an underscore. A call that fails loses its points.
    The lines of code that kept the GPU waiting are the artifact gpulse/code.md.
    """

    name = "mlflow"

    def __init__(self, run_id: str | None = None, *, step: Axis = "seconds", prefix: str = "gpulse") -> None:
        self._given = run_id
        self._run_id: str | None = None
        self._points = Points(step)
        self._prefix = prefix
        self._names: dict[str, str] = {}
        self._held: list[Any] = []
        self._metric: Any = None
        self._client: Any = None

    def open(self) -> None:
        mlflow = load("mlflow", "mlflow")
        run_id = self._given
        if run_id is None:
            run = (
                mlflow.active_run()
            )  # of this thread: another thread has no active run, and logging would start a new one
            if run is None:
                raise GpulseError(
                    "no MLflow run is active.", "Call mlflow.start_run() first, or pass MlflowSink(run_id)."
                )
            run_id = run.info.run_id
        self._run_id = run_id
        self._points.resume()
        self._metric = load("mlflow.entities", "mlflow").Metric
        self._client = mlflow.MlflowClient()

    def write(self, sample: Sample) -> None:
        self._hold(self._points.add(sample))
        if len(self._held) >= _ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Write every point except the one still being collected."""
        while self._held:
            batch, self._held = self._held[:_MOST], self._held[_MOST:]
            self._client.log_batch(self._run_id, metrics=batch, synchronous=True)  # blocks only this sink's thread

    def summarize(self, text: str) -> None:
        self._client.log_text(self._run_id, text, under(self._prefix, "code.md"))

    def close(self) -> None:
        if self._client is not None:
            try:
                self._hold(self._points.finish())
                self.flush()
            finally:
                self._client = None

    def _hold(self, point: Point | None) -> None:
        if point is None:
            return
        moment = round(point.time * 1000)
        for tag, value in point.values.items():
            name = self._names.get(tag) or self._names.setdefault(tag, _allowed(under(self._prefix, tag)))
            self._held.append(self._metric(name, value, moment, point.step))


def _allowed(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "/_.- :" else "_" for letter in name)
