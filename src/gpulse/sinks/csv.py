"""Write samples to a CSV file, one per row, that pandas and spreadsheets can read."""

from __future__ import annotations

import os

from ..errors import GpulseError
from ..model.codec import time_text
from ..store.lines import LineFile, first_line, replaced
from .base import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .base import Sample

FIXED = ("time", "elapsed", "step", "phase")
_RUN = "run"  # a file of an earlier version gets it as its last column


class CsvSink(Sink):
    """Writes time (RFC 3339, UTC), elapsed (seconds), step, phase, run (its id) and one column per tag; a missing value is an empty cell.

    The first sample defines the columns. A tag that appears later gets a column at the end: the file is rewritten and
    replaced atomically. A file written by an earlier run is continued; any other file is rejected. Text that a spreadsheet
    would take for a formula is prefixed with an apostrophe.
    """

    name = "csv"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: LineFile | None = None
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

    def continued(self) -> str:
        return f"csv:{os.path.abspath(self.path)}"

    def close(self) -> None:
        if self._file is not None:
            self._file.close_or_remove()
            self._file = None

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
