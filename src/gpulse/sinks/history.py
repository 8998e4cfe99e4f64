"""Write samples to the history of this machine."""

from __future__ import annotations

from .base import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.history import Recorder
    from .base import Sample


class HistorySink(Sink):
    """Records the monitored GPUs for `gpulse history`; `open` raises an error that names the process if another one writes there."""

    name = "history"
    processes = ("user", "command")  # besides what a monitor reads of every process

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self.real_only = path is None  # this machine's history is no place for a simulated one
        self._recorder: Recorder | None = None

    def open(self) -> None:
        from ..store.history import Recorder

        self._recorder = Recorder(self._path)

    def write(self, sample: Sample) -> None:
        if self._recorder is not None:
            self._recorder.put(sample.snapshot, (*sample.events, *(alert.event for alert in sample.alerts)))

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
