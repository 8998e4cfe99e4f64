"""Files that continue where an earlier run ended."""

from __future__ import annotations

import os

from ..errors import GpulseError
from ..store.lines import LineFile


class KeptLines(LineFile):
    """A LineFile that keeps existing lines, and stays intact if a write fails half way."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._handle = self._open(0)

    def write(self, line: str) -> None:
        end = os.fstat(self._handle).st_size if self._handle >= 0 else 0
        try:
            super().write(line)
        except GpulseError:
            if self._handle >= 0:
                os.ftruncate(self._handle, end)  # half a line would corrupt the next one
            raise

    def cut(self) -> None:
        """Drop an incomplete last line, as left by a killed writer."""
        with open(self.path, "rb") as found:
            size = end = found.seek(0, os.SEEK_END)
            while end:
                start = max(0, end - 65536)
                found.seek(start)
                newline = found.read(end - start).rfind(b"\n")
                end = start + newline + 1 if newline >= 0 else start
                if newline >= 0:
                    break
        if end != size:
            os.ftruncate(self._handle, end)


def first_line(path: str) -> str | None:
    """Create the directories of a path and return the file's first line without the newline; None if it has none yet."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "rb") as found:
            line = found.readline(1 << 24)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GpulseError(f"{path} cannot be opened: {error.strerror}.") from None
    return line.decode("utf-8", "replace").rstrip("\r\n") if line else None
