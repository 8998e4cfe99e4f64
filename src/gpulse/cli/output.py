"""Line output to standard output, or to a file that log rotation may replace."""

from __future__ import annotations

import signal
import sys

from ..store.lines import LineFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class Output:
    """Writes lines immediately. With a file, SIGHUP reopens its path before the next line; `private` if it holds processes."""

    def __init__(self, path: str | None, *, private: bool) -> None:
        self._file = LineFile(path, private=private) if path else None
        self._moved = False
        if self._file is not None:
            signal.signal(signal.SIGHUP, self._rotate)

    def write(self, lines: list[str]) -> None:
        """Write lines and flush them, so that a crash loses none."""
        if self._file is None:
            if lines:
                sys.stdout.write("\n".join(lines) + "\n")
                sys.stdout.flush()
            return
        if self._moved:
            self._moved = False
            self._file.reopen()
        for line in lines:
            self._file.write(line)

    def close(self) -> None:
        """Close the file, if any."""
        if self._file is not None:
            self._file.close()

    def _rotate(self, number: int, frame: FrameType | None) -> None:
        self._moved = True
