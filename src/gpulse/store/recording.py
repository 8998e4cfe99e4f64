"""Recordings: files of one snapshot a line, plain or .gz."""

from __future__ import annotations

from ..errors import RecordingError
from ..model.codec import from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    from ..model.snapshot import Snapshot

_GZIP = b"\x1f\x8b"


def read_recording(path: str) -> Iterator[Snapshot]:
    """Yield the snapshots of a file in order.

    A last line without its end is left out when it cannot be read, as after a crash of the writer; any other bad line
    raises RecordingError with its number.
    """
    try:
        with _open(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and (snapshot := _read(path, number, line)) is not None:
                    yield snapshot
    except EOFError:
        return  # a .gz whose writer died: what is whole has been read
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}.") from None


def _read(path: str, number: int, line: bytes) -> Snapshot | None:
    try:
        return from_line(line.decode("utf-8", "replace"))
    except RecordingError as error:
        if not line.endswith(b"\n"):
            return None
        raise RecordingError(f"{path}, line {number}: {error.message}", error.remedy) from None


def _open(path: str) -> io.BufferedIOBase:
    with open(path, "rb") as start:
        packed = start.read(2) == _GZIP
    if not packed:
        return open(path, "rb")
    import gzip  # only packed recordings need it: 8 ms
    import zlib

    class Packed(gzip.GzipFile):
        """A .gz whose damage is an OSError like any other file's."""

        def readline(self, size: int | None = -1) -> bytes:
            try:
                return super().readline(size)
            except zlib.error as error:
                raise OSError(f"it is damaged ({error})") from None

        def __next__(self) -> bytes:
            if line := self.readline():
                return line
            raise StopIteration

    return Packed(path)
