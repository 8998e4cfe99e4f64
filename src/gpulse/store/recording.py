"""Recordings being read: files of one snapshot a line, plain or .gz, or what comes through a pipe; in order or at any place."""

from __future__ import annotations

import os
import stat
import time
from array import array
from bisect import bisect_right
from functools import partial

from ..errors import RecordingError
from ..model.codec import from_line, parse_time
from .lines import is_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from ..model.snapshot import Snapshot
    from .packed import Places

    Line = TypeVar("Line")

LONGEST = 1 << 24  # bytes of a line; a sample of 16 GPUs and 1000 processes has 1 MB
STDIN = "-"
PIPE_PATIENCE = 20.0  # seconds until the first byte: a recorder on another machine has to be reached first
_NO_WRITER = 10.0  # seconds until somebody opens a named pipe for writing
_MOST_DAMAGED = 100  # damaged lines in place of the first sample, after which this is no recording
_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 16
_STARTS = (b"{", b"\x1f", b"\n", b" ")  # of a recording, plain or packed
_HEAD = b'{"schema": 1, "time": "'  # how our own lines begin: the time is found without reading the rest
_copies: dict[str, int] = {}  # an unnamed file for each pipe, which can be read only once


class DamagedLine(RecordingError):
    """A line of a recording that is not what was written."""


def read_recording(path: str, damaged: list[int] | None = None) -> Iterator[Snapshot]:
    """Yield the snapshots of a file in order; errors and `damaged` as in `read_lines`."""
    return read_lines(path, from_line, damaged)


def read_lines(path: str, read: Callable[[str], Line], damaged: list[int] | None = None) -> Iterator[Line]:
    """Yield what `read` makes of each line of a recording.

    Damaged lines are left out and their numbers added to `damaged`; a last line without its end, as after a crash of the
    writer, is just left out. Raises RecordingError when the file cannot be read or has damaged lines only, and for a line of
    a schema that this version does not know.
    """
    name = title_of(path)
    try:
        with open_text(path) as text:
            lines = iter(lambda: next_line(name, text), b"")
            yield from _sound(name, lines, partial(_read_line, read, name), damaged, text)
    except OSError as error:
        raise RecordingError(f"{name} cannot be read: {error.strerror or error}.") from None


def read_pipe(path: str) -> Iterator[Snapshot]:
    """Yield the samples that come through a pipe as they come; damaged lines are left out.

    Raises RecordingError when the pipe cannot be read, when nothing comes through it, and when that is no recording.
    """
    name = title_of(path)
    samples = _sound(name, _piped_lines(name, path), partial(_read_line, from_line, name))
    try:
        first = next(samples, None)
        if first is None:
            raise RecordingError(
                f"{name} ended before a sample came.",
                "Write a recording into it.",
                option="Pipe in what `gpulse record -o -` writes.",
            )
        yield first
        yield from samples
    except OSError as error:
        raise RecordingError(f"{name} cannot be read: {error.strerror or error}.") from None


def _sound(
    name: str,
    lines: Iterable[bytes],
    parse: Callable[[int, bytes, bool], Line | None],
    damaged: list[int] | None = None,
    text: io.BufferedReader | None = None,
) -> Iterator[Line]:
    """Yield what `parse` makes of lines; it is given number and line, and whether the line is as it was written.

    After a line with a checksum, one without is not.
    """
    problem: RecordingError | None = None
    good, checked = 0, False
    for number, line in enumerate(lines, 1):
        right = is_right(line)
        try:
            found = parse(number, line, not checked if right is None else right) if line.strip() else None
        except DamagedLine as error:
            problem = problem or error
            if not good and number > _MOST_DAMAGED:
                break  # this is no recording
            if damaged is not None:
                damaged.append(number)
            continue
        if found is not None:
            checked = checked or right is True
            good += 1
            yield found
    if not good and (problem or (text is not None and getattr(text.raw, "damaged", False))):
        raise problem or RecordingError(f"{name} cannot be read: it is damaged.")


def _read_line(read: Callable[[str], Line], path: str, number: int, line: bytes, right: bool = True) -> Line | None:
    """Return what `read` makes of a line; None for one that was cut off.

    Raises DamagedLine or RecordingError, with file and number, for one that is not `right` or of an unknown schema.
    """
    try:
        if not right:
            raise DamagedLine("this line is damaged: its checksum is not right.")
        return read(line.decode("utf-8", "replace"))
    except RecordingError as error:
        if not line.endswith(b"\n"):
            return None
        kind = RecordingError if "schema" in error.message else DamagedLine
        raise kind(f"{path}, line {number}: {error.message}", error.remedy) from None


def next_line(name: str, text: io.BufferedReader) -> bytes:
    """Return the next line, empty at the end; raise RecordingError for one too long to be a sample."""
    line = text.readline(LONGEST + 1)
    if len(line) > LONGEST:
        raise _too_long(name)
    return line


def _too_long(name: str) -> RecordingError:
    return RecordingError(f"{name} is not a recording: it has a line of more than {LONGEST >> 20} MiB.")


def is_packed(path: str) -> bool:
    """Tell from its content whether a file is packed; its name counts only if its first bytes are damaged. Raises OSError.

    One byte may be all that a killed writer left.
    """
    with open(path, "rb") as start:
        first = start.read(2)
    return first in (_GZIP, _GZIP[:1]) or (path.endswith(".gz") and first not in (b"", b"{", b'{"'))


def open_text(path: str, places: Places | None = None) -> io.BufferedReader:
    """Return the lines of a recording, unpacked; can seek, the faster the more `places` are known. Raises OSError.

    What comes through a pipe is read to its end first.
    """
    if is_pipe(path):
        path = _copy_of_pipe(path)
    if not is_packed(path):
        return open(path, "rb")
    import io

    from .packed import PackedReader  # zlib: only packed recordings need it

    return io.BufferedReader(PackedReader(path, [] if places is None else places), 1 << 16)


def is_pipe(path: str) -> bool:
    """Return whether a path is standard input or a pipe, which cannot be read twice."""
    try:
        mode = os.fstat(0).st_mode if path == STDIN else os.stat(path).st_mode
    except OSError:
        return path == STDIN
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or path == STDIN


def title_of(path: str) -> str:
    """Return what messages call a path."""
    return "standard input" if path == STDIN else path


def _open_pipe(path: str) -> int:
    """Return a handle for reading without waiting for a writer; raise OSError for a terminal."""
    if path != STDIN:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if os.isatty(0):
        raise OSError("it is a terminal; pipe a recording into it: gpulse record -o - | gpulse report -")
    return os.dup(0)


def _pieces(path: str) -> Iterator[bytes]:
    """Yield what comes through a pipe until its writers have closed it, and close it; raise OSError when nothing comes at first."""
    import select

    handle, patience = _open_pipe(path), PIPE_PATIENCE if path == STDIN else _NO_WRITER
    poll = select.poll()
    poll.register(handle, select.POLLIN | select.POLLHUP)
    try:
        if not poll.poll(patience * 1000):
            raise OSError(f"nothing came through this pipe within {patience:.0f} s")
        while piece := os.read(handle, _BLOCK):
            yield piece
            poll.poll()
    finally:
        os.close(handle)


def _piped_lines(name: str, path: str) -> Iterator[bytes]:
    rest = b""
    for piece in _pieces(path):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(rest) > LONGEST:
            raise _too_long(name)


def _copy_of_pipe(path: str) -> str:
    """Copy what comes through a pipe to an unnamed file, once, and return a path of that. Raises OSError."""
    if path not in _copies:
        import tempfile

        with tempfile.TemporaryFile() as file:
            for piece in _pieces(path):
                file.write(piece)
                if file.tell() == len(piece) and not piece.startswith(_STARTS):
                    break  # no recording: reading what there is says so
            file.flush()
            _copies[path] = os.dup(file.fileno())
    return f"/proc/self/fd/{_copies[path]}"


class Frames:
    """A recording that can be read at any place; used by one thread, closed by its creator.

    `times` are seconds into the recording of the samples found so far. They never go back: where the clock was set back the
    recording goes on. A sample costs 24 bytes, and every 4 MB of a packed recording's text 40 KB.
    """

    def __init__(self, path: str) -> None:
        """Open a file; raise RecordingError when it cannot be."""
        self.path = title_of(path)
        self.times: array[float] = array("d")
        self.whole = False  # whether all samples have been found
        self.damaged: list[int] = []  # numbers of the lines that are left out
        self._starts: array[int] = array("Q")
        self._numbers: array[int] = array("Q")
        self._start = self._end = self._number = 0
        self._newest = 0.0
        places: Places = []
        try:
            self._finding, self._reading = open_text(path, places), open_text(path, places)
        except OSError as error:
            raise self._unreadable(error) from None
        self._moments = _sound(self.path, self._lines(), self._moment, self.damaged, self._finding)

    def __len__(self) -> int:
        return len(self.times)

    def find(self, until: float, budget: float = float("inf")) -> None:
        """Find the samples up to one after a moment, or all there are; stop early after `budget` seconds."""
        end = time.monotonic() + budget
        while not self.whole and not (self.times and self.times[-1] > until):
            self._find_one()
            if budget < float("inf") and time.monotonic() >= end:
                return

    def at(self, moment: float) -> int:
        """Return the place of the last sample not after a moment, or of the first."""
        self.find(moment)
        return max(0, bisect_right(self.times, moment) - 1)

    def find_place(self, place: int) -> bool:
        """Find the samples up to this place; return whether there is one."""
        while not self.whole and len(self.times) <= place:
            self._find_one()
        return place < len(self.times)

    def line(self, place: int) -> bytes:
        """Read the text of a sample that has been found: a writer may have put more into it than a snapshot holds."""
        try:
            self._reading.seek(self._starts[place])
            return self._reading.readline()
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def __getitem__(self, place: int) -> Snapshot:
        """Read a sample that has been found; raise RecordingError when it is bad."""
        sample = _read_line(from_line, self.path, self._numbers[place], self.line(place))
        if sample is None:
            raise RecordingError(f"{self.path} was cut off while it was read.")
        return sample

    def close(self) -> None:
        """Release the file; safe to call twice."""
        self._finding.close()
        self._reading.close()

    def _find_one(self) -> None:
        moment = None
        try:
            moment = next(self._moments, None)
        except (OSError, ValueError) as error:  # a file that has been closed raises the latter
            raise self._unreadable(error) from None
        finally:
            self.whole = moment is None  # as far as it will ever be
        if moment is not None:
            self.times.append(self.times[-1] + max(0.0, moment - self._newest) if self.times else 0.0)
            self._starts.append(self._start)
            self._numbers.append(self._number)
            self._newest = moment

    def _lines(self) -> Iterator[bytes]:
        while line := next_line(self.path, self._finding):
            self._start, self._end, self._number = self._end, self._end + len(line), self._number + 1
            yield line

    def _moment(self, number: int, line: bytes, right: bool) -> float | None:
        """Return when a line was written; None when it was cut off."""
        if right and line.startswith(_HEAD) and line.endswith(b"}\n"):
            try:
                return parse_time(line[len(_HEAD) : line.index(b'"', len(_HEAD))].decode("ascii", "replace"))
            except (RecordingError, ValueError):
                pass  # whatever it is, reading it says so
        sample = _read_line(from_line, self.path, number, line, right)
        return None if sample is None else sample.time

    def _unreadable(self, error: OSError | ValueError) -> RecordingError:
        why = "it has been closed" if isinstance(error, ValueError) else error.strerror or error
        return RecordingError(f"{self.path} cannot be read: {why}.")
