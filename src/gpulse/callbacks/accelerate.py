"""The tracker for Hugging Face Accelerate; once this module is imported, `log_with="gpulse"` finds it."""

from __future__ import annotations

from .framework import framework
from .training import Course

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from ..monitor.monitor import Monitor
    from ..sinks.base import Sink

    T = TypeVar("T")

_tracking: Any = framework("accelerate.tracking", "accelerate")
_GeneralTracker: Any = _tracking.GeneralTracker


class GpulseTracker(_GeneralTracker):  # type: ignore[misc]
    """Monitors from init_trackers() to end_training(): `Accelerator(log_with=GpulseTracker())`; takes what Monitor takes.

    `log_with="gpulse"` with `init_kwargs={"gpulse": {...}}` does the same where Accelerate lets trackers register (1.15).
    `accelerator.log(values, step)` counts the steps from one call to the next, the first as one; without a step it counts
    none. An epoch among the values is marked; the others belong to other trackers. Only the loop knows what it waits for:
    go through `tracker.batches(loader)`. `accelerator.get_tracker("gpulse", unwrap=True)` is the monitor, for its phases.
    """

    name = "gpulse"
    requires_logging_directory = False
    main_process_only = False  # every machine has GPUs; the monitor knows which process of a machine samples

    def __init__(self, run_name: str = "", sinks: Sink | Iterable[Sink] = (), **options: Any) -> None:
        super().__init__()
        self.run_name = run_name
        self._course = Course(sinks, options)
        self._epoch: float | None = None
        self._counts = False
        if not hasattr(_GeneralTracker, "start"):  # an old Accelerate, whose trackers begin when they are made
            self.start()

    @property
    def tracker(self) -> Monitor:
        """The monitor of this run, or of the last."""
        return self._course.monitor

    monitor = tracker

    def start(self) -> None:
        """Start the monitor."""
        self._epoch, self._counts = None, False
        self._course.begin("")  # nothing tells training from the rest

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Leave the configuration to other trackers."""

    def log(self, values: Mapping[str, Any], step: int | None = None, **more: Any) -> None:
        """Count the steps since the last call."""
        epoch = values.get("epoch")
        if isinstance(epoch, (int, float)) and epoch != self._epoch:
            self._epoch = epoch
            self._course.mark("epoch", epoch)
        if step is not None:
            if not self._counts:
                self._counts = True
                self._course.at(step - 1)
            self._course.reach(step)

    def finish(self) -> None:
        """Stop the monitor."""
        self._course.end()

    def batches(self, loader: Iterable[T]) -> Iterator[T]:
        """Yield what a loader yields, noting how long each took to come; steps are counted by `log`."""
        self._course.resume()
        for batch in loader:
            self._course.batch_begin()
            yield batch
            self._course.batch_end()


if hasattr(_tracking, "register_tracker_class"):
    _tracking.register_tracker_class(GpulseTracker)
