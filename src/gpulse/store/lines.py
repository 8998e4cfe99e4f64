"""Files that are whole at any moment: they grow line by line, each line one write and with a checksum, or are replaced at once."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager

from ..errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

PRIVATE = 0o600  # of all that holds command lines, from the moment it is there
OPEN = 0o644
_TAIL = 1 << 16
_LOADED = time.time()  # what is older was written by another process, whatever its PID


def open_foreign(path: str) -> tuple[int, os.stat_result] | None:
    """Open a plain file for reading that another user may have put there; return its descriptor and status, or None.

    No link is followed, no pipe waited for, and what is no plain file is not opened. The caller checks whose it is.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG((status := os.fstat(handle)).st_mode):
        return handle, status
    os.close(handle)
    return None


@contextmanager
def replaced(path: str, mode: int = PRIVATE, *, always: bool = False) -> Iterator[BinaryIO]:
    """Write a file whole or not at all: it takes its place when the block ends; raise OSError, and change nothing, if it cannot.

    A pipe, a device or /dev/stdout is written to as it is, unless whatever is there is `always` to be replaced: others may have
    put it there.
    """
    if (
        not always
        and os.path.exists(path)
        and (not os.path.isfile(path) or path.startswith(("/dev/std", "/dev/fd/", "/proc/")))
    ):
        with open(path, "wb") as file:
            yield file
        return
    beside = f"{path}.{os.getpid()}.part"
    if os.path.lexists(beside) and os.lstat(beside).st_mtime < _LOADED:
        remove(beside)  # of a process that was killed: in a container, the next one has the same PID
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(handle, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:  # also on Ctrl-C: nothing half-written stays behind
        remove(beside)
        raise


def save(path: str, texts: Iterable[str], mode: int = PRIVATE) -> int:
    """Write texts one after another, as `replaced` does, and return how many bytes that were; raise GpulseError if they cannot be."""
    try:
        with replaced(path, mode) as file:
            return sum(file.write(text.encode("utf-8", "backslashreplace")) for text in texts)
    except OSError as error:
        raise GpulseError(f"{path} cannot be written: {error.strerror or error}.", "Name another file.") from None


def remove(path: str) -> None:
    """Remove a file, unless it is gone or cannot be removed."""
    try:
        os.unlink(path)
    except OSError:
        pass


class AppendedFile:
    """A file that is appended to; a write that fails leaves it as it was before. Closed by its creator."""

    error: type[GpulseError] = GpulseError

    def __init__(self, path: str, mode: int = 0, *, private: bool = False) -> None:
        """Open or create the file; raise `error` when it is a symbolic link or cannot be opened.

        Only its owner may read a `private` file.
        """
        self.path = path
        self._private = private
        self._handle = self._open(mode)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def close_or_remove(self) -> None:
        """Close the file, and remove it if nothing was ever written to it."""
        if self._handle >= 0:
            status = os.fstat(self._handle)
            self.close()
            if stat.S_ISREG(status.st_mode) and status.st_size == 0:
                remove(self.path)

    def last_line(self) -> bytes:
        """Return what follows the last newline: half a line when its writer was killed."""
        tail, back = b"", _TAIL
        with open(self.path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            while len(tail) < size and b"\n" not in tail:
                file.seek(max(0, size - back))
                tail, back = file.read(), 2 * back
        return tail[tail.rfind(b"\n") + 1 :]

    def cut(self, count: int) -> None:
        """Drop the last `count` bytes."""
        if count:
            os.ftruncate(self._handle, os.fstat(self._handle).st_size - count)

    def _put(self, data: bytes) -> None:
        """Append bytes; raise `error` when the disk is full or the file is gone."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            if self._handle >= 0 and len(left) < len(data) and stat.S_ISREG(os.fstat(self._handle).st_mode):
                self.cut(len(data) - len(left))  # half a line would spoil the next one
            remedy = "Free some space, or write elsewhere." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise self.error(f"{self.path} cannot be written: {error.strerror}.", remedy) from error

    def _open(self, mode: int = 0) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_APPEND | os.O_CLOEXEC | mode
        try:
            handle = os.open(self.path, flags, PRIVATE if self._private else OPEN)
        except OSError as error:
            if error.errno == errno.ELOOP:
                message = f"{self.path} is a symbolic link, which is not allowed."
                raise self.error(message, "Name the file itself.") from None
            raise self.error(f"{self.path} cannot be opened: {error.strerror}.") from None
        status = os.fstat(handle)
        if self._private and stat.S_ISREG(status.st_mode) and status.st_mode & 0o077 and status.st_uid == os.geteuid():
            os.fchmod(handle, PRIVATE)  # it was there before
        return handle


class LineFile(AppendedFile):
    """A file of text lines; a crash loses at most the line being written."""

    def __init__(self, path: str, *, keep: bool = False, private: bool = True) -> None:
        """Create the file, or empty it unless it is to `keep` its lines; a last line without an end is dropped.

        `private`: it holds processes, whose command lines only the owner of the file may read.
        """
        super().__init__(path, 0 if keep else os.O_TRUNC, private=private)
        if keep:
            self.cut(len(self.last_line()))

    def write(self, line: str) -> None:
        """Append a line."""
        self._put(f"{line}\n".encode("utf-8", "backslashreplace"))

    def reopen(self) -> None:
        """Reopen the path, as after a log rotation; what is there is kept."""
        fresh = self._open()
        os.close(self._handle)
        self._handle = fresh


def first_line(path: str) -> str | None:
    """Make the directories of a path and return the file's first line without its end; None when it has none yet."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "rb") as found:
            line = found.readline(1 << 24)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GpulseError(f"{path} cannot be opened: {error.strerror}.") from None
    return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


def csv_rows(rows: Iterable[Mapping[str, object]], header: Sequence[str] = ()) -> Iterator[str]:
    """Yield rows as CSV below their keys, or those of `header`; nothing where there is neither."""
    import csv
    import io

    def line(cells: Iterable[object]) -> str:
        text = io.StringIO()
        written = ["" if cell is None else digits(cell) if isinstance(cell, float) else cell for cell in cells]
        csv.writer(text, lineterminator="").writerow(written)
        return text.getvalue()

    keys = header
    if header:
        yield line(header)
    for row in rows:
        if not keys:
            yield line(keys := [*row])
        yield line(row[key] for key in keys)


def digits(value: float) -> str:
    """Write a number to the thousandth, without an exponent and without zeros at its end."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


_KEY = b', "check": "'
_LENGTH = len(_KEY) + 8 + len(b'"}')


def with_check(line: bytes) -> bytes:
    """Return a line of JSON with its CRC-32 as the last key of the object."""
    from zlib import crc32

    return b'%s%s%08x"}' % (line[:-1], _KEY, crc32(line))


def is_right(line: bytes) -> bool | None:
    """Return whether the checksum of a line is its own; None for a line without one."""
    line = line.rstrip()
    if not line[-_LENGTH:].startswith(_KEY):
        return None
    from zlib import crc32

    return b"%08x" % crc32(line[:-_LENGTH] + b"}") == line[-10:-2]
