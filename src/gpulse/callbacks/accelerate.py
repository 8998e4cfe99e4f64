"""The tracker for Hugging Face Accelerate; after importing this module, `log_with="gpulse"` works."""

from __future__ import annotations

from .training import Monitored, MonitorOptions, Sinks, framework, takes_monitor_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from typing_extensions import Unpack

    T = TypeVar("T")

_tracking: Any = framework("accelerate.tracking", "accelerate")
_GeneralTracker: Any = _tracking.GeneralTracker


class GpulseTracker(Monitored, _GeneralTracker):  # type: ignore[misc]
    """Monitors from init_trackers() to end_training(): `Accelerator(log_with=GpulseTracker())`; takes the arguments of Monitor.

    `log_with="gpulse"` with `init_kwargs={"gpulse": {...}}` does the same if Accelerate supports registering trackers (1.15).
    `accelerator.log(values, step)` counts the steps since the previous call, the first call as one; without a step it counts
    none. An epoch among the values is marked; other values are ignored. To measure the time spent waiting for data,
    iterate over `tracker.batches(loader)`. `accelerator.get_tracker("gpulse", unwrap=True)` is the monitor, for its phases.
    """

    name = "gpulse"
    requires_logging_directory = False
    main_process_only = False  # every machine has GPUs; the monitor decides which process of a machine samples
    _epoch: float | None = None
    _counts = False

    @takes_monitor_options
    def __init__(self, run_name: str = "", sinks: Sinks = (), **options: Unpack[MonitorOptions]) -> None:
        super().__init__(sinks, **options)
        self.run_name = run_name
        if not hasattr(_GeneralTracker, "start"):  # old versions of Accelerate start trackers when they are created
            self.start()

    tracker = Monitored.monitor

    def start(self) -> None:
        """Start the monitor."""
        self._epoch, self._counts = None, False
        self._course.begin("")  # training cannot be distinguished from the rest

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Ignore the configuration, which is for other trackers."""

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
        """Yield the batches of a loader and measure how long each took to load; `log` counts the steps."""
        yield from self._course.monitor.batches(loader, steps=False)


if hasattr(_tracking, "register_tracker_class"):
    _tracking.register_tracker_class(GpulseTracker)
