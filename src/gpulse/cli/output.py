"""Line output to standard output or to a file that log rotation may replace, and the signals that end it."""

from __future__ import annotations

import signal
import sys

from ..store.lines import LineFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from ..model.snapshot import Snapshot


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


class Ending:
    """Stops a loop on SIGINT, SIGTERM or SIGHUP: immediately while it waits, after the current line while it writes."""

    def __init__(self) -> None:
        self._writing = True
        self._told = False

    def __enter__(self) -> Ending:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup and in background jobs of scripts
                signal.signal(number, self._tell)
        return self

    def __exit__(self, *failure: object) -> None:
        self._writing = True  # cleanup is short and must not be interrupted by a second Ctrl-C

    def until_told(self, samples: Iterator[Snapshot]) -> Iterator[Snapshot]:
        """Yield samples until a signal arrives."""
        while not self._told:
            try:
                self._writing = False
                snapshot = next(samples, None)
                self._writing = True
            except KeyboardInterrupt:
                return
            if snapshot is None:
                return
            yield snapshot

    def _tell(self, number: int, frame: FrameType | None) -> None:
        self._told = True
        if not self._writing:
            raise KeyboardInterrupt
