"""The callback for Lightning: lightning.pytorch or pytorch_lightning, whichever the program uses."""

from __future__ import annotations

import re
import sys
from functools import wraps

from ..sinks.base import under
from .training import Arrivals, Logged, MissingFramework, framework, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_FETCH = re.compile(
    r"\[_?\w+Loop\]\.\w+_next"
)  # what loops tell a profiler: [_TrainingEpochLoop].train_dataloader_next
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
    The time in which a loop fetches a batch, as it reports to the trainer's profiler, counts as waiting for data.
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
        self._course.follow(lambda: trainer.profiler, "start", self._asked)
        self._course.follow(lambda: trainer.profiler, "stop", self._arrived)

    def _asked(self, start: Callable[..., Any]) -> Callable[..., Any]:
        fetches = self._course.fetches

        @wraps(start)
        def noted(action: str, *more: Any, **named: Any) -> Any:
            try:
                return start(action, *more, **named)
            finally:
                if _FETCH.fullmatch(action):
                    fetches.asked()

        return noted

    def _arrived(self, stop: Callable[..., Any]) -> Callable[..., Any]:
        fetches = self._course.fetches

        @wraps(stop)
        def noted(action: str, *more: Any, **named: Any) -> Any:
            if _FETCH.fullmatch(action):
                fetches.arrived()
            return stop(action, *more, **named)

        return noted

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._course.end()
        self._log(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._course.end(exception)
        self._log(trainer)

    # --- training

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.at(trainer.global_step)  # a checkpoint may have restored its own value

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.mark("epoch", trainer.current_epoch)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._log(trainer)
        self._course.reach(trainer.global_step)

    # --- the other stages, and validation within fit

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._course.enter("sanity")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self._course.leave()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._stage == "fit" and not trainer.sanity_checking:
            self._course.enter("validate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._stage == "fit" and not trainer.sanity_checking:
            self._course.leave()

    def _batch_end(self, trainer: Any, *of_the_hook: Any) -> None:
        self._log(trainer)
        self._course.reach(None if self._stage == "fit" else self._course.reached + 1)

    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _batch_end

    # --- loggers

    @harmless
    def _log(self, trainer: Any) -> None:
        means = {} if self._arrivals is None else self._arrivals.take()
        if means and trainer.is_global_zero:
            for logger in trainer.loggers:
                logger.log_metrics({under("gpulse", tag): value for tag, value in means.items()}, trainer.global_step)
