"""Recordings: files of one snapshot a line, plain or .gz."""

from __future__ import annotations

from ..errors import RecordingError
from ..model.codec import from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from ..model.snapshot import Snapshot
    from .packed import Places

    Line = TypeVar("Line")

_GZIP = b"\x1f\x8b"


def read_recording(path: str) -> Iterator[Snapshot]:
    """Yield the snapshots of a file in order.

    A last line without its end is left out when it cannot be read, as after a crash of the writer; any other bad line
    raises RecordingError with its number.
    """
    return read_lines(path, from_line)


def read_lines(path: str, read: Callable[[str], Line]) -> Iterator[Line]:
    """Yield what `read` makes of each line of a recording; errors as in `read_recording`."""
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and (found := read_line(path, number, line, read)) is not None:
                    yield found
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}.") from None


def read_line(path: str, number: int, line: bytes, read: Callable[[str], Line]) -> Line | None:
    """Return what `read` makes of a line; None for one that was cut off; raise RecordingError with file and number for a bad one."""
    try:
        return read(line.decode("utf-8", "replace"))
    except RecordingError as error:
        if not line.endswith(b"\n"):
            return None
        raise RecordingError(f"{path}, line {number}: {error.message}", error.remedy) from None


def is_packed(path: str) -> bool:
    """Tell from its content, not from its name, whether a file is packed. Raises OSError.

    One byte may be all that a killed writer left.
    """
    with open(path, "rb") as start:
        return (start.read(2) or b"?") in (_GZIP, _GZIP[:1])


def open_text(path: str, places: Places | None = None) -> io.BufferedReader:
    """Return the lines of a recording, unpacked; can seek, the faster the more `places` are known. Raises OSError."""
    if not is_packed(path):
        return open(path, "rb")
    import io

    from .packed import PackedReader  # zlib: only packed recordings need it

    return io.BufferedReader(PackedReader(path, [] if places is None else places), 1 << 16)
