"""The callback for Keras 3, with any of its backends."""

from __future__ import annotations

from .training import Monitored, framework

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_Callback: Any = framework("keras", "keras").callbacks.Callback


class GpulseCallback(Monitored, _Callback):  # type: ignore[misc]
    """Monitors fit, evaluate and predict: `model.fit(..., callbacks=[GpulseCallback()])`; takes the arguments of Monitor.

    Phases are fit, evaluate (also within fit) and predict. Steps are the batches of fit. The time from the end of a batch to the
    start of the next counts as waiting for data; if Keras runs ahead of the device, only while the device is idle.
    Values go to the sinks and not into Keras's logs, which would add all of them to its progress line. Keras has no hook for
    errors: after one, the monitor runs until the next fit(), the end of the program, or `callback.monitor.stop()`.
    """

    async_safe = True  # otherwise Keras would wait for the device after every batch before calling us
    _before = 0  # steps before this epoch

    def on_train_begin(self, logs: Any = None) -> None:
        self._course.begin("fit")

    def on_train_end(self, logs: Any = None) -> None:
        self._course.end()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = self._course.reached
        self._course.mark("epoch", epoch)
        self._course.resume()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._course.batch_begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._course.batch_end(self._before + batch + 1)  # one call may cover several batches: steps_per_execution

    def on_test_begin(self, logs: Any = None) -> None:
        self._course.enter("evaluate")

    def on_predict_begin(self, logs: Any = None) -> None:
        self._course.enter("predict")

    def _batch_begin(self, batch: int, logs: Any = None) -> None:
        self._course.batch_begin()

    def _batch_end(self, batch: int, logs: Any = None) -> None:
        self._course.batch_end()

    def _end(self, logs: Any = None) -> None:
        self._course.leave()

    on_test_batch_begin = on_predict_batch_begin = _batch_begin
    on_test_batch_end = on_predict_batch_end = _batch_end
    on_test_end = on_predict_end = _end
