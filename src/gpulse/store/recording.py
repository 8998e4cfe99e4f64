"""Recordings: files of one snapshot a line, plain or .gz, or what comes through a pipe."""

from __future__ import annotations

from ..errors import RecordingError
from ..model.codec import from_line
from .line_checks import has_check, is_damaged
from .pipe import is_pipe, kept, pieces, title_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from ..model.snapshot import Snapshot
    from .packed import Places

    Line = TypeVar("Line")

LONGEST = 1 << 24  # bytes of a line; a sample of 16 GPUs and 1000 processes has 1 MB
PATIENCE = 100  # damaged lines in place of the first sample, after which this is no recording
_GZIP = b"\x1f\x8b"


def read_recording(path: str, damaged: list[int] | None = None) -> Iterator[Snapshot]:
    """Yield the snapshots of a file in order; errors and `damaged` as in `read_lines`."""
    return read_lines(path, from_line, damaged)


def read_lines(path: str, read: Callable[[str], Line], damaged: list[int] | None = None) -> Iterator[Line]:
    """Yield what `read` makes of each line of a recording.

    Damaged lines are left out and their numbers added to `damaged`; a last line without its end, as after a crash of the
    writer, is just left out. Raises RecordingError when the file cannot be read or has damaged lines only, and for a line of
    a schema that this version does not know.
    """
    problem: RecordingError | None = None
    good, checked = 0, False
    name = title_of(path)
    try:
        with open_text(path) as lines:
            for number, line in enumerate(iter(lambda: next_line(name, lines), b""), 1):
                try:
                    found = read_line(name, number, line, read, checked) if line.strip() else None
                except DamagedLine as error:
                    problem = problem or error
                    if not good and number > PATIENCE:
                        raise problem from None  # this is no recording
                    if damaged is not None:
                        damaged.append(number)
                    continue
                if found is not None:
                    checked = checked or has_check(line)
                    good += 1
                    yield found
            if not good and was_damaged(lines):
                raise problem or RecordingError(f"{name} cannot be read: it is damaged.")
    except OSError as error:
        raise RecordingError(f"{name} cannot be read: {error.strerror or error}.") from None
    if problem is not None and not good:
        raise problem


def read_pipe(path: str) -> Iterator[Snapshot]:
    """Yield the samples that come through a pipe as they come; damaged lines are left out.

    Raises RecordingError when the pipe cannot be read, when nothing comes through it, and when that is no recording.
    """
    name = title_of(path)
    number = good = 0
    rest = b""
    problem: RecordingError | None = None
    try:
        for piece in pieces(path):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                number += 1
                try:
                    sample = read_line(name, number, line + b"\n", from_line) if line.strip() else None
                except DamagedLine as error:
                    problem = problem or error
                    if not good and number > PATIENCE:
                        break
                    continue
                if sample is not None:
                    good += 1
                    yield sample
            if len(rest) > LONGEST:
                raise _too_long(name)
            if not good and number > PATIENCE:
                break
    except OSError as error:
        raise RecordingError(f"{name} cannot be read: {error.strerror or error}.") from None
    if not good:
        raise problem or RecordingError(
            f"{name} ended before a sample came.",
            "Write a recording into it.",
            option="Pipe in what `gpulse record -o -` writes.",
        )


def next_line(name: str, text: io.BufferedReader) -> bytes:
    """Return the next line, empty at the end; raise RecordingError for one so long that it cannot be a sample."""
    line = text.readline(LONGEST + 1)
    if len(line) > LONGEST:
        raise _too_long(name)
    return line


def _too_long(name: str) -> RecordingError:
    return RecordingError(f"{name} is not a recording: it has a line of more than {LONGEST >> 20} MiB.")


def was_damaged(text: io.BufferedReader) -> bool:
    """Return whether a packed recording that has been read has damaged bytes."""
    return bool(getattr(text.raw, "damaged", False))


class DamagedLine(RecordingError):
    """A line of a recording that is not what was written."""


def read_line(path: str, number: int, line: bytes, read: Callable[[str], Line], checked: bool = False) -> Line | None:
    """Return what `read` makes of a line; None for one that was cut off.

    Raises DamagedLine or RecordingError, with file and number, for one that is damaged or of an unknown schema. After lines
    that are `checked`, one without a checksum is damaged.
    """
    try:
        if is_damaged(line) or (checked and not has_check(line)):
            raise DamagedLine("this line is damaged: its checksum is not right.")
        return read(line.decode("utf-8", "replace"))
    except RecordingError as error:
        if not line.endswith(b"\n"):
            return None
        kind = RecordingError if "schema" in error.message else DamagedLine
        raise kind(f"{path}, line {number}: {error.message}", error.remedy) from None


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
        path = kept(path)
    if not is_packed(path):
        return open(path, "rb")
    import io

    from .packed import PackedReader  # zlib: only packed recordings need it

    return io.BufferedReader(PackedReader(path, [] if places is None else places), 1 << 16)
