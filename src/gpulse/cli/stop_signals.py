"""Stop a loop on a signal, but never in the middle of a write."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from ..model.snapshot import Snapshot


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
