"""Recordings: files of one snapshot a line, plain or .gz."""

from __future__ import annotations

from ..errors import RecordingError
from ..model.codec import from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from ..model.snapshot import Snapshot

_GZIP = b"\x1f\x8b"


def read_recording(path: str) -> Iterator[Snapshot]:
    """Yield the snapshots of a file in order.

    A last line cut short is left out, as after a crash of the writer; any other bad line raises RecordingError with its number.
    """
    failure: RecordingError | None = None
    try:
        with _open(path) as lines:
            for number, line in enumerate(lines, 1):
                if failure is not None:
                    raise failure
                if not line.strip():
                    continue
                try:
                    snapshot = from_line(line)
                except RecordingError as error:
                    failure = RecordingError(f"{path}, line {number}: {error.message}", error.remedy)
                    continue
                yield snapshot
    except EOFError:
        return  # a .gz whose writer died: what is whole has been read
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _open(path: str) -> IO[str]:
    with open(path, "rb") as start:
        packed = start.read(2) == _GZIP
    if packed:
        import gzip  # only packed recordings need it: 8 ms

        return gzip.open(path, "rt", encoding="utf-8")
    return open(path, encoding="utf-8")
