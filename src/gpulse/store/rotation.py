"""A recording in several files: the next one begins when one is full, the oldest go when there are too many."""

from __future__ import annotations

import os

from ..errors import RecordingError
from .recorder import RecordingFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.snapshot import Snapshot

_FEW = 4  # digits of a file's number: names sort as the files follow each other


class Rotation:
    """Writes run-0001.ndjson, run-0002.ndjson and so on for run.ndjson; without `size` and `span` the one file run.ndjson.

    A file is full at `size` bytes or after `span` seconds. At most `keep` files and `most` bytes are left on the disk;
    where there is only one file, `write` returns False instead of going beyond `most`. Closed by its creator.
    """

    def __init__(
        self,
        path: str,
        *,
        size: float | None = None,
        span: float | None = None,
        keep: int | None = None,
        most: float | None = None,
        append: bool = False,
        force: bool = False,
        private: bool = True,
    ) -> None:
        self._path = path
        self._private = private
        self._size, self._span, self._keep, self._most = size, span, keep, most
        self._turns = size is not None or span is not None
        self._full: dict[str, int] = {}  # files that are done, oldest first, and their bytes
        self._since: float | None = None  # when the file being written began
        self._longest = 0
        self.count = 0
        self.written = 0
        if self._turns:
            self._number = self._take_stock(append, force)
            self._file = RecordingFile(_numbered(path, self._number), force=force, private=private)
        else:
            self._file = RecordingFile(path, append=append, force=force, private=private)

    @property
    def path(self) -> str:
        """The file being written."""
        return self._file.path

    @property
    def size(self) -> int:
        """The bytes of all files that are there."""
        return sum(self._full.values()) + self._file.size

    def write(self, snapshot: Snapshot) -> bool:
        """Append a snapshot; return False, with nothing written, when there is no room left for it."""
        if self._since is None:
            self._since = snapshot.time
        elif self._turns and self._is_full(snapshot.time):
            self._turn(snapshot.time)
        if not self._make_room(snapshot.time):
            return False
        length = self._file.write(snapshot)
        self._longest = max(self._longest, length)
        self.count += 1
        self.written += length
        return True

    def close(self) -> None:
        """End the file; safe to call twice."""
        self._file.close()

    def _is_full(self, now: float) -> bool:
        if self._size is not None and self._file.size >= self._size:
            return True
        # a clock that was set back begins a new file, too
        return self._span is not None and self._since is not None and not 0 <= now - self._since < self._span

    def _turn(self, now: float) -> None:
        self._file.close()
        self._full[self._file.path] = os.path.getsize(self._file.path)
        self._number += 1
        self._file = RecordingFile(_numbered(self._path, self._number), private=self._private)
        self._since = now
        while self._keep is not None and len(self._full) >= self._keep:
            self._drop()

    def _make_room(self, now: float) -> bool:
        """Drop what is oldest until a line fits below `most`; return False when there is nothing to drop."""
        while self._most is not None and self._longest and self.size + self._longest > self._most:
            if self._turns and not self._full and self._file.size:
                self._turn(now)
            if not self._full:
                return not self._turns and not self.size
            self._drop()
        return True

    def _drop(self) -> None:
        oldest = next(iter(self._full))
        try:
            os.unlink(oldest)
        except FileNotFoundError:
            pass  # somebody took it away: that is as good
        except OSError as error:
            raise RecordingError(f"{oldest} cannot be removed: {error.strerror}.") from None
        del self._full[oldest]

    def _take_stock(self, append: bool, force: bool) -> int:
        """Find the files of an earlier recording and return the number to go on with."""
        there = _files(self._path)
        if there and not (append or force):
            raise RecordingError(
                f"{there[0][1]} already exists;",
                "choose another name.",
                option="use --append to continue after it, --force to overwrite it, or choose another name.",
            )
        self._full = {path: os.path.getsize(path) for _, path in there}
        if force and not append:
            while self._full:
                self._drop()
        return there[-1][0] + 1 if self._full else 1


def _parts(path: str) -> tuple[str, str]:
    """Split a path where the number goes: run.ndjson.gz into run and .ndjson.gz."""
    stem, packed = (path[:-3], ".gz") if path.endswith(".gz") else (path, "")
    stem, end = os.path.splitext(stem)
    return stem, end + packed


def _numbered(path: str, number: int) -> str:
    stem, end = _parts(path)
    return f"{stem}-{number:0{_FEW}d}{end}"


def _files(path: str) -> list[tuple[int, str]]:
    """Return numbers and paths of the files that are there, in order."""
    stem, end = _parts(path)
    folder, name = os.path.split(stem)
    found = []
    try:
        names = os.listdir(folder or ".")
    except OSError as error:
        raise RecordingError(f"{folder} cannot be read: {error.strerror}.") from None
    for each in names:
        number = each.removeprefix(f"{name}-").removesuffix(end)
        if each == f"{name}-{number}{end}" and len(number) >= _FEW and number.isdecimal() and number.isascii():
            found.append((int(number), os.path.join(folder, each)))
    return sorted(found)
