"""Write samples to TensorBoard: to their own run, or to a writer of the program."""

from __future__ import annotations

import os
import time as clock

from ..errors import GpulseError, UsageError
from .base import Points, Sink, load, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .base import Axis, Point, Sample


class TensorBoardSink(Sink):
    """Writes one curve per tag, with increasing steps and the times of the samples. Every point is in the file at once.

    With `logdir`, the run is a new directory in it, gpulse or the next free gpulse-2, because TensorBoard reads one writer's
    file per directory; `directory` is its path once open. With `writer` (torch.utils.tensorboard or tensorboardX), the curves
    are added to the program's own, and the program closes the writer. Without both, logdir is "runs", as for other writers.
    `step` "seconds" counts seconds elapsed, or samples if they come more often than every second; "train" counts the
    program's steps, and samples of one step are averaged to one point. A run without any sample is removed.
    The lines of code that kept the GPU waiting are the text gpulse/code.
    Values have the 24 bits of precision that TensorBoard keeps.
    """

    name = "tensorboard"

    def __init__(
        self,
        logdir: str | os.PathLike[str] | None = None,
        *,
        writer: Any = None,
        step: Axis = "seconds",
        prefix: str = "",
    ) -> None:
        if logdir is not None and writer is not None:
            raise UsageError("TensorBoardSink takes a logdir or a writer, not both;", "leave one out.")
        self.directory: str | None = None
        self._logdir = "runs" if logdir is None else os.fspath(logdir)
        self._writer = writer
        self._axis = step
        self._points = Points(step)
        self._prefix = prefix
        self._texts: Mapping[str, str] = {}
        self._told: set[str] = set()
        self._step = 0
        self._make: Callable[[], _EventFile | _Writer] | None = None
        self._curves: _EventFile | _Writer | None = None

    def open(self) -> None:
        if self._writer is not None:
            self._points.resume()
            curves = _Writer(self._writer)
            self._make = lambda: curves
            return
        self._make = self._prepare()
        self._points, self._told = Points(self._axis), set()

    def _prepare(self) -> Callable[[], _EventFile | _Writer]:
        """Create the directory, so that a problem is reported at the start; the file is created with the first point."""
        try:
            library = load("tensorboard.summary.writer.record_writer", "tensorboard")
        except GpulseError as missing:
            try:
                other = load("tensorboardX", "tensorboardX")
            except GpulseError:
                raise missing from None
            directory = self.directory = _fresh_directory(self._logdir)
            return lambda: _Writer(other.SummaryWriter(directory), own=True)
        directory = self.directory = _fresh_directory(self._logdir)
        events = load("tensorboard.compat.proto.event_pb2", "tensorboard")
        return lambda: _EventFile(directory, library.RecordWriter, events.Event)

    def write(self, sample: Sample) -> None:
        self._texts = sample.texts
        self._put(self._points.add(sample))

    def summarize(self, text: str) -> None:
        if self._curves is not None:
            self._curves.add_text(under(self._prefix or "gpulse", "code"), text, self._step)

    def flush(self) -> None:
        """Write every point except a training step that is still being collected."""
        if self._curves is not None:
            self._curves.flush()

    def close(self) -> None:
        if self._make is None:
            return
        try:
            self._put(self._points.finish())
        finally:
            curves, self._curves, self._make = self._curves, None, None
            if curves is not None:
                curves.close()
            elif self.directory is not None:
                self._leave_nothing(self.directory)

    def _leave_nothing(self, directory: str) -> None:
        try:
            os.rmdir(directory)
            self.directory = None
            os.rmdir(self._logdir)
        except OSError:
            pass  # there is something else in it

    def _put(self, point: Point | None) -> None:
        if point is None or self._make is None:
            return
        if self._curves is None:
            self._curves = self._make()
        texts = {under(self._prefix, tag): self._texts.get(tag, "") for tag in point.values.keys() - self._told}
        values = {under(self._prefix, tag): value for tag, value in point.values.items()}
        self._curves.add(values, point.step, point.time, texts)
        self._curves.write_through()
        self._step = point.step
        self._told.update(point.values)


class _Writer:
    """A SummaryWriter of one of the libraries; `own`: we created it, so we may pass more arguments and must close it."""

    def __init__(self, writer: Any, own: bool = False) -> None:
        self._writer = writer
        self._own = own
        self._flushed = 0.0

    def add(self, values: Mapping[str, float], step: int, time: float, texts: Mapping[str, str]) -> None:
        for tag, value in values.items():
            spare = {"summary_description": texts[tag]} if self._own and texts.get(tag) else {}
            self._writer.add_scalar(tag, value, global_step=step, walltime=time, **spare)

    def add_text(self, tag: str, text: str, step: int) -> None:
        self._writer.add_text(tag, text, global_step=step)

    def write_through(self) -> None:
        """Flush at most once per second: the writer's own thread is waited for."""
        if (now := clock.monotonic()) - self._flushed >= 0.9:
            self._flushed = now
            self.flush()

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close() if self._own else self._writer.flush()


class _EventFile:
    """Our own event file, in TensorBoard's format and with its record writer.

    TensorBoard's EventFileWriter would load all of TensorFlow if that is installed, and would need a thread.
    """

    def __init__(self, directory: str, record_writer: Any, event: Any) -> None:
        from socket import gethostname

        self._event = event
        name = f"events.out.tfevents.{int(clock.time())}.{gethostname()}.{os.getpid()}"
        self._file = open(os.path.join(directory, name), "xb")  # noqa: SIM115  # closed by close
        self._records = record_writer(self._file)
        self._write(event(wall_time=clock.time(), file_version="brain.Event:2"))

    def add(self, values: Mapping[str, float], step: int, time: float, texts: Mapping[str, str]) -> None:
        event = self._event(wall_time=time, step=step)
        for tag, value in values.items():
            curve = event.summary.value.add(tag=tag, simple_value=value)
            if texts.get(tag):
                curve.metadata.summary_description = texts[tag]
                curve.metadata.plugin_data.plugin_name = "scalars"
                curve.metadata.data_class = 1  # DATA_CLASS_SCALAR; without it the fast loader drops the description
        self._write(event)

    def add_text(self, tag: str, text: str, step: int) -> None:
        event = self._event(wall_time=clock.time(), step=step)
        value = event.summary.value.add(tag=tag)
        value.metadata.plugin_data.plugin_name = "text"
        value.metadata.data_class = 2  # DATA_CLASS_TENSOR
        value.tensor.dtype = 7  # DT_STRING
        value.tensor.string_val.append(text.encode("utf-8", "replace"))
        self._write(event)

    def write_through(self) -> None:
        """Hand everything to the kernel, where it survives the end of the program."""
        self._file.flush()

    flush = write_through

    def close(self) -> None:
        self._file.close()

    def _write(self, event: Any) -> None:
        self._records.write(event.SerializeToString())


def _fresh_directory(logdir: str) -> str:
    """Create and return the first of gpulse, gpulse-2, ... that does not exist yet."""
    number, path = 1, os.path.join(logdir, "gpulse")
    while True:
        try:
            os.makedirs(path)
        except FileExistsError:
            number += 1
            path = os.path.join(logdir, f"gpulse-{number}")
        except OSError as error:
            raise GpulseError(f"{path} cannot be created: {error.strerror}.") from None
        else:
            return path
