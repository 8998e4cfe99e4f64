"""Sinks that write on this machine: CSV, JSON lines, and the history."""

from __future__ import annotations

import os

from ..errors import GpulseError, RecordingError
from ..model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from ..model.codec import time_text
from ..store.lines import LineFile, first_line, replaced
from .base import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..store.history import Recorder
    from .base import Mark, Sample

FIXED = ("time", "elapsed", "step", "phase")
_RUN = "run"  # a file of an earlier version gets it as its last column


class FileSink(Sink):
    """Base of sinks that append lines to one file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: LineFile | None = None

    def continued(self) -> str:
        return f"{self.name}:{os.path.abspath(self.path)}"

    def close(self) -> None:
        if self._file is not None:
            self._file.close_or_remove()
            self._file = None


class CsvSink(FileSink):
    """Writes time (RFC 3339, UTC), elapsed (seconds), step, phase, run (its id) and one column per tag; a missing value is an empty cell.

    The first sample defines the columns. A tag that appears later gets a column at the end: the file is rewritten and
    replaced atomically. A file written by an earlier run is continued; any other file is rejected. Text that a spreadsheet
    would take for a formula is prefixed with an apostrophe.
    """

    name = "csv"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._columns: list[str] = []
        self._places: dict[str, int] = {}

    def open(self) -> None:
        self._columns, self._places = [], {}
        header = first_line(self.path)
        if header is not None:
            from csv import reader  # takes 2 ms, only needed to continue a file

            self._columns = next(reader([header]), [])
            if tuple(self._columns[: len(FIXED)]) != FIXED:
                raise GpulseError(f"{self.path} exists and was not written by a CsvSink.", "Choose another name.")
        self._file = LineFile(self.path, keep=True, private=False)

    def write(self, sample: Sample) -> None:
        assert self._file is not None
        values = {tag: repr(value) for tag, value in sample.values.items()}
        if sample.run:
            values[_RUN] = _quoted(_cell(sample.run))
        if not self._columns or not values.keys() <= self._places.keys():
            self._make_room(values)
        cells = [""] * len(self._columns)
        cells[0] = time_text(sample.time)
        cells[1] = repr(sample.elapsed)
        cells[2] = "" if sample.step is None else str(sample.step)
        cells[3] = _quoted(_cell(sample.phase))
        for tag, cell in values.items():
            cells[self._places[tag]] = cell
        self._file.write(",".join(cells))

    def _make_room(self, tags: Iterable[str]) -> None:
        """Add a column at the end for every new tag."""
        names = {tag: _cell(tag) for tag in tags}
        fresh = sorted(
            set(names.values()).difference(self._columns[len(FIXED) :]), key=lambda name: (name != _RUN, name)
        )
        if not self._columns:
            self._write_header([*FIXED, *fresh])
        elif fresh:
            self._widen([*self._columns, *fresh])
        places = {name: at for at, name in enumerate(self._columns[len(FIXED) :], len(FIXED))}
        self._places.update((tag, places[name]) for tag, name in names.items())

    def _write_header(self, columns: list[str]) -> None:
        assert self._file is not None
        self._file.write(",".join(map(_quoted, columns)))
        self._columns = columns

    def _widen(self, columns: list[str]) -> None:
        """Rewrite the file with more columns: takes 0.3 s for a day of samples at 1 Hz, and is rare after the first few samples."""
        assert self._file is not None
        room = b"," * (len(columns) - len(self._columns)) + b"\n"
        try:
            with open(self.path, "rb") as old, replaced(self.path, os.fstat(old.fileno()).st_mode & 0o777) as new:
                old.readline()
                new.write(",".join(map(_quoted, columns)).encode() + b"\n")
                new.writelines(line.rstrip(b"\r\n") + room for line in old)
        except OSError as error:
            raise GpulseError(f"{self.path} cannot be extended by a column: {error.strerror}.") from None
        self._file.reopen()
        self._columns = columns


def _cell(text: str) -> str:
    """Return text on one line with control characters escaped, which no spreadsheet runs as a formula."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "'")) else text


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if "," in cell or '"' in cell else cell


class JsonlSink(FileSink):
    """Writes every sample as a complete snapshot (schema 1) with elapsed, step, phase and the id of the run.

    `marks`, `program` (the monitored process), `values` (values that are in neither the snapshot nor the program) and
    `progress` (seconds, calls and steps of each phase since the previous line) are included if not empty, and every half minute
    `stacks` (what the program executed meanwhile, and how long the GPU waited and computed).
    `gpulse --source replay:FILE` and `read_recording` read the file; only its owner may, for it holds command lines. An
    existing recording is continued; any other file is rejected.
    """

    name = "jsonl"
    stacks = True

    def open(self) -> None:
        from ..model.codec import from_line

        if (line := first_line(self.path)) is not None:
            try:
                from_line(line)
            except RecordingError:
                raise GpulseError(f"{self.path} exists and is not a recording.", "Choose another name.") from None
        self._file = LineFile(self.path, keep=True)

    def write(self, sample: Sample) -> None:
        import json

        from ..store.lines import with_check

        assert self._file is not None
        self._file.write(with_check(json.dumps(_plain(sample), allow_nan=False).encode()).decode())


def _plain(sample: Sample) -> dict[str, Any]:
    from ..model.codec import to_plain

    plain = to_plain(sample.snapshot)
    plain.update(elapsed=sample.elapsed, step=sample.step, phase=sample.phase)
    if sample.run:
        plain["run"] = sample.run
    if sample.marks:
        plain["marks"] = [_mark_to_plain(mark) for mark in sample.marks]
    if sample.program is not None:
        plain["program"] = dict(sample.program.items())
    if values := {tag: value for tag, value in sample.values.items() if _adds(tag, sample)}:
        plain["values"] = values
    if progress := {name: each.to_plain() for name, each in sample.progress.items()}:
        plain["progress"] = {name: each for name, each in progress.items() if each}
    if sample.stacks is not None:
        plain["stacks"] = sample.stacks
    return plain


def _mark_to_plain(mark: Mark) -> dict[str, Any]:
    value = mark.value
    if isinstance(value, float) and not abs(value) < float("inf"):
        value = str(value)  # a loss can be NaN, which JSON does not support
    return {"name": mark.name, "value": value, "time": mark.time}


def _adds(tag: str, sample: Sample) -> bool:
    """Whether a tag is not already in the rest of the line."""
    place, _, key = tag.partition("/")
    if place == "host":
        return key not in HOST_METRICS
    if place == "process":
        return sample.program is None or key not in PROCESS_METRICS
    return place.rstrip("0123456789") != "gpu" or key not in GPU_METRICS


class HistorySink(Sink):
    """Records the monitored GPUs for `gpulse history`; `open` raises an error that names the process if another one writes there."""

    name = "history"
    processes = ("user", "command")  # besides what a monitor reads of every process

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self.real_only = path is None  # this machine's history is no place for a simulated one
        self._recorder: Recorder | None = None
        self._news: list[str] = []  # what the recorder has said, in its own thread

    def open(self) -> None:
        from ..store.history import Recorder

        self._recorder = Recorder(self._path, told=self._news.append)

    def write(self, sample: Sample) -> None:
        if self._recorder is not None:
            self._recorder.put(sample.snapshot, (*sample.events, *(alert.event for alert in sample.alerts)))
        if self._news:
            raise GpulseError(self._news.pop(0))  # the sample itself is kept; the worker says this once

    def close(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()
            if recorder.unwritten:
                raise GpulseError(f"{recorder.unwritten} samples could not be written to {recorder.path} and are lost.")
