"""Recordings being written: each snapshot one line and one write, so that whatever ends it costs at most the last line."""

from __future__ import annotations

import os
import stat

from ..errors import RecordingError
from ..model.codec import from_line, to_line
from .line_checks import checked
from .lines import AppendedFile

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
            if force and not append:
                _empty(self._handle)
            there = os.fstat(self._handle)
            if there.st_size and stat.S_ISREG(there.st_mode):
                self._begin_again(append)
            elif path.endswith(".gz"):
                self._pack()
            self.size = os.fstat(self._handle).st_size
        except BaseException:  # whatever it was, the file must not stay open
            os.close(self._handle)
            raise

    def write(self, snapshot: Snapshot) -> int:
        """Append a snapshot and return how many bytes that took; raise RecordingError when the disk is full or gone."""
        data = checked(to_line(snapshot).encode()) + b"\n"
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
                self._put(self._packer.end())
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
        if line.endswith(b"\n") or not b'{"schema": '.startswith(
            line[:11]
        ):  # else its writer died within the first line
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


def _empty(handle: int) -> None:
    if stat.S_ISREG(os.fstat(handle).st_mode):
        os.ftruncate(handle, 0)


def _lock(handle: int, path: str) -> None:
    """Keep a second writer out: two would spoil each other's lines."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RecordingError(f"{path} is being written by another recorder;", "choose another name.") from None
    except OSError:
        pass  # a file system without locks
