"""The callback for Lightning: lightning.pytorch or pytorch_lightning, whichever the program uses."""

from __future__ import annotations

import sys

from ..sinks.base import under
from .training import Arrivals, Logged, MissingFramework, framework, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_HOMES = (("lightning.pytorch", "lightning"), ("pytorch_lightning", "pytorch-lightning"))


def _lightning() -> Any:
    """Return the one that is already loaded, else the first that is installed."""
    missing: list[MissingFramework] = []
    for module, package in sorted(_HOMES, key=lambda home: sys.modules.get(home[0]) is None):
        try:
            return framework(module, package)
        except MissingFramework as error:
            missing.append(error)
    raise missing[0]


_Callback: Any = _lightning().Callback


class GpulseCallback(Logged, _Callback):  # type: ignore[misc]
    """Monitors fit, validate, test and predict: `Trainer(callbacks=[GpulseCallback()])`; takes the arguments of Monitor.

    Phases are the stage and, within fit, sanity and validate. Steps are the trainer's global_step, in other stages batches.
    The time from the end of a batch to the start of the next counts as waiting for data, without validation and checkpoints.
    With `log`, the values also go to the trainer's loggers, under gpulse/, as their mean since the previous time: at the end of
    a batch, because loggers need not be thread-safe, and only in the process of rank 0. `monitor` is that of the last run.
    """

    _stage = ""
    _arrivals: Arrivals | None = None  # of this run, for the loggers

    # --- start and end

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._stage = str(getattr(stage, "value", stage))
        self._arrivals = Arrivals() if self._logs else None
        self._course.begin(self._stage, *([] if self._arrivals is None else [self._arrivals]))

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._course.end()
        self._log(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._course.end(exception)
        self._log(trainer)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._course.pause()  # there is no hook for when the file is written

    # --- training

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.at(trainer.global_step)  # a checkpoint may have restored its own value

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.mark("epoch", trainer.current_epoch)
        self._course.resume()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._course.batch_begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._log(trainer)
        self._course.batch_end(trainer.global_step)

    # --- the other stages, and validation within fit

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.enter("sanity")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self._course.leave()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._stage == "fit" and not trainer.sanity_checking:
            self._course.enter("validate")
        else:
            self._course.resume()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._stage == "fit" and not trainer.sanity_checking:
            self._course.leave()
            self._course.resume()

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.resume()

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.resume()

    def _batch_start(self, *of_the_hook: Any) -> None:
        self._course.batch_begin()

    def _batch_end(self, trainer: Any, *of_the_hook: Any) -> None:
        self._log(trainer)
        self._course.batch_end(None if self._stage == "fit" else self._course.reached + 1)

    on_validation_batch_start = on_test_batch_start = on_predict_batch_start = _batch_start
    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _batch_end

    # --- loggers

    @harmless
    def _log(self, trainer: Any) -> None:
        means = {} if self._arrivals is None else self._arrivals.take()
        if means and trainer.is_global_zero:
            for logger in trainer.loggers:
                logger.log_metrics({under("gpulse", tag): value for tag, value in means.items()}, trainer.global_step)
