"""Recordings being written: each snapshot one line and one write, so that a crash costs at most the last line; in one file or several."""

from __future__ import annotations

import os
import stat

from ..errors import RecordingError
from ..model.codec import from_line, to_line
from .lines import AppendedFile, with_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from .packed import Packer


class RecordingFile(AppendedFile):
    """One recording, packed when its name ends in .gz; `size` is its bytes. After a write that failed no more may follow."""

    error = RecordingError

    def __init__(self, path: str, *, append: bool = False, force: bool = False, private: bool = True) -> None:
        """Make a file; one that holds something is refused unless it is to be continued or replaced.

        `private`: it holds processes, whose command lines only the owner of the file may read.
        """
        super().__init__(path, private=private)
        self.size = 0
        self._packer: Packer | None = None
        try:
            _lock(self._handle, path)
            regular = stat.S_ISREG(os.fstat(self._handle).st_mode)
            if force and not append and regular:
                os.ftruncate(self._handle, 0)
            if regular and os.fstat(self._handle).st_size:
                self._begin_again(append)
            elif path.endswith(".gz"):
                self._pack()
            self.size = os.fstat(self._handle).st_size
        except BaseException:  # whatever it was, the file must not stay open
            os.close(self._handle)
            raise

    def write(self, snapshot: Snapshot) -> int:
        """Append a snapshot and return how many bytes that took; raise RecordingError when the disk is full or gone."""
        data = with_check(to_line(snapshot).encode()) + b"\n"
        data = data if self._packer is None else self._packer.line(data)
        try:
            self._put(data)
        except RecordingError as error:
            self._packer = None  # it is ahead of the file now
            if isinstance(error.__cause__, BrokenPipeError):
                raise error.__cause__ from None  # the reader has gone, which is no fault
            raise
        self.size += len(data)
        return len(data)

    def close(self) -> None:
        """End the file; safe to call twice. A packed file that cannot be ended any more stays readable."""
        if self._handle < 0:
            return
        try:
            if self._packer is not None:
                self._put(end := self._packer.end())
                self.size += len(end)
        except RecordingError:
            pass  # only the checksum is missing
        finally:
            super().close()

    def _begin_again(self, append: bool) -> None:
        if not append:
            raise RecordingError(
                f"{self.path} already exists;",
                "choose another name.",
                option="use --append to continue it, --force to overwrite it, or choose another name.",
            )
        try:
            if self._is_packed():
                from .packed import mend

                mend(self.path)
                self._pack()
            else:
                self._end_line()
        except OSError as error:
            raise RecordingError(f"{self.path} cannot be continued: {error.strerror or error}.") from None
        except RecordingError:
            raise RecordingError(f"{self.path} is not a recording;", "choose another name.") from None

    def _is_packed(self) -> bool:
        """Return whether the file is packed; raise RecordingError when what it begins with was never a snapshot."""
        from .recording import is_packed, next_line, open_text

        with open_text(self.path) as text:
            line = next_line(self.path, text)
        died = not line.endswith(b"\n") and b'{"schema": '.startswith(line[:11])  # its writer, within the first line
        if not died:
            from_line(line.decode("utf-8", "replace"))
        return is_packed(self.path)

    def _pack(self) -> None:
        from .packed import Packer

        self._packer = Packer()

    def _end_line(self) -> None:
        """End the last line, or drop it when its writer was killed within it."""
        if last := self.last_line():
            try:
                from_line(last.decode("utf-8", "replace"))
            except RecordingError:
                self.cut(len(last))
            else:
                self._put(b"\n")


def _lock(handle: int, path: str) -> None:
    """Keep a second writer out: two would spoil each other's lines."""
    from .claims import try_lock

    try:
        locked = try_lock(handle)
    except OSError:
        locked = True  # a file system without locks
    if not locked:
        raise RecordingError(f"{path} is being written by another recorder;", "choose another name.")


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
        self._full[self._file.path] = self._file.size
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
