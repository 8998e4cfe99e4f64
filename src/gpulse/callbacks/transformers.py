"""The callback for the Trainer of Hugging Face Transformers."""

from __future__ import annotations

import os
from functools import wraps

from .training import Logged, framework, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..sinks.base import Sink

_transformers: Any = framework("transformers", "transformers")
_TrainerCallback: Any = _transformers.TrainerCallback


class GpulseCallback(Logged, _TrainerCallback):  # type: ignore[misc]
    """Monitors train(): `Trainer(callbacks=[GpulseCallback()])`; takes the arguments of Monitor.

    Phases are train and, within it, evaluate, which starts at its first batch because there is no earlier hook. Steps are those of
    state.global_step. The time in which the trainer fetches the batches of a step counts as waiting for data. Callbacks cannot add to
    what the trainer's reporters log, so with `log` a sink of ours writes to each tracker that `report_to` names, on the process of
    rank 0: TensorBoard (the run gpulse in the folder of the trainer's own run), W&B, MLflow, Comet, ClearML, SwanLab and Trackio. No
    hook reports an error: the monitor then runs until the next train(), the end of the program, or `callback.monitor.stop()`.
    """

    _evaluates = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._evaluates = False
        beside = _beside(args) if self._logs and state.is_world_process_zero else None
        self._course.begin("train", *(beside or ()))
        self._course.at(state.global_step)
        self._course.follow(lambda: _transformers.Trainer, "get_batch_samples", self._timed)

    def _timed(self, get_batch_samples: Callable[..., Any]) -> Callable[..., Any]:
        fetches = self._course.fetches

        @wraps(get_batch_samples)
        def timed(trainer: Any, epoch_iterator: Any, *more: Any, **named: Any) -> Any:
            return get_batch_samples(trainer, fetches.batches(epoch_iterator), *more, **named)

        return timed

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._course.end()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._course.mark("epoch", int(state.epoch or 0))

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._course.reach(state.global_step)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._course.depth and not self._evaluates:  # evaluate() alone is not monitored
            self._evaluates = True
            self._course.enter("evaluate")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._evaluates:
            self._evaluates = False
            self._course.leave()

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any, **more: Any) -> None:
        self.on_evaluate(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._course.mark("save", state.global_step)


@harmless
def _beside(args: Any) -> list[Sink]:
    """Return a sink for every supported reporter of the trainer."""
    from ..sinks.base import BUILT_IN, sink_named

    named = ["comet" if name == "comet_ml" else name for name in args.report_to or ()]
    places = {"tensorboard": f"tensorboard:{_logging_dir(args)}"} if "tensorboard" in named else {}
    return [sink_named(places.get(name, name)) for name in named if name in BUILT_IN]


def _logging_dir(args: Any) -> str:
    """Return the folder of the run that the trainer's TensorBoard reporter, which is called before us, has just started."""
    stated = os.environ.get("TENSORBOARD_LOGGING_DIR") or getattr(args, "logging_dir", None)  # the latter before 5.0
    if stated:
        return os.path.expanduser(stated)
    runs = os.path.join(args.output_dir, "runs")
    ours = f".{os.getpid()}."  # in the names of files that torch's writer has created in this process
    files = [os.path.join(folder, name) for folder, _, names in os.walk(runs) for name in names if "tfevents" in name]
    newest = max((path for path in files if ours in os.path.basename(path)), key=os.path.getmtime, default="")
    return os.path.dirname(newest) or runs
