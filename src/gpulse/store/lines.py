"""A file of lines that is whole at any moment: each line one write, nothing held back."""

from __future__ import annotations

import errno
import os

from ..errors import GpulseError


class LineFile:
    """A file written line by line; a crash loses at most the line being written. Closed by whoever opened it."""

    def __init__(self, path: str) -> None:
        """Make the file, or empty it; raise GpulseError when it is a symbolic link or cannot be opened."""
        self.path = path
        self._handle = self._open(os.O_TRUNC)

    def write(self, line: str) -> None:
        """Append a line; raise GpulseError when the disk is full or the file is gone."""
        data = memoryview(f"{line}\n".encode("utf-8", "backslashreplace"))
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            remedy = "Free some space, or write elsewhere." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise GpulseError(f"{self.path} cannot be written: {error.strerror}.", remedy) from None

    def reopen(self) -> None:
        """Open the path anew, as after a log rotation; what is there is kept."""
        fresh = self._open(0)
        os.close(self._handle)
        self._handle = fresh

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self, mode: int) -> int:
        try:
            return os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_APPEND | os.O_CLOEXEC | mode, 0o644
            )
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise GpulseError(
                    f"{self.path} is a symbolic link, which is not allowed.", "Name the file itself."
                ) from None
            raise GpulseError(f"{self.path} cannot be opened: {error.strerror}.") from None
