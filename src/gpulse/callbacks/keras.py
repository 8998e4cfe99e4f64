"""The callback for Keras 3, with any of its backends."""

from __future__ import annotations

from functools import wraps
from importlib import import_module

from .training import Monitored, framework, say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_keras: Any = framework("keras", "keras")
_Callback: Any = _keras.callbacks.Callback


def _iterators() -> Any:
    """Return the class that enumerates the batches of an epoch, for all backends."""
    return import_module("keras.src.trainers.epoch_iterator").EpochIterator


class GpulseCallback(Monitored, _Callback):  # type: ignore[misc]
    """Monitors fit, evaluate and predict: `model.fit(..., callbacks=[GpulseCallback()])`; takes the arguments of Monitor.

    Phases are fit, evaluate (also within fit) and predict. Steps are the batches of fit. The time in which Keras fetches a batch
    counts as waiting for data. With TensorFlow it is not known: there, batches are fetched inside of the compiled step.
    Values go to the sinks and not into Keras's logs, which would add all of them to its progress line. Keras has no hook for
    errors: after one, the monitor runs until the next fit(), the end of the program, or `callback.monitor.stop()`.
    """

    async_safe = True  # otherwise Keras would wait for the device after every batch before calling us
    _before = 0  # steps before this epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self._course.begin("fit")
        self._follow()

    def _follow(self) -> None:
        if _keras.backend.backend() == "tensorflow":
            say_once(
                "tensorflow",
                "Keras fetches batches inside of TensorFlow; the time spent waiting for data is not known.",
            )
        elif not self._course.fetches.followed:
            self._course.follow(_iterators, "_enumerate_iterator", self._timed)

    def _timed(self, enumerate_iterator: Callable[..., Any]) -> Callable[..., Any]:
        fetches = self._course.fetches

        @wraps(enumerate_iterator)
        def timed(iterator: Any) -> Iterator[tuple[Any, ...]]:
            for *steps, batches in enumerate_iterator(iterator):
                yield (*steps, fetches.batches(batches))

        return timed

    def on_train_end(self, logs: Any = None) -> None:
        self._course.end()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = self._course.reached
        self._course.mark("epoch", epoch)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._course.count()  # what other threads have reported

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._course.reach(self._before + batch + 1)  # one call may cover several batches: steps_per_execution

    def on_test_begin(self, logs: Any = None) -> None:
        self._course.enter("evaluate")
        self._follow()

    def on_predict_begin(self, logs: Any = None) -> None:
        self._course.enter("predict")
        self._follow()

    def on_test_end(self, logs: Any = None) -> None:
        self._course.leave()

    def on_predict_end(self, logs: Any = None) -> None:
        self._course.leave()
