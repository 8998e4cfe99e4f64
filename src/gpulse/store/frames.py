"""The samples of a recording by place and time: found as far as needed, read when asked for, never all in memory."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right

from ..errors import RecordingError
from ..model.codec import from_line, parse_time
from .line_checks import has_check, is_damaged
from .pipe import title_of
from .recording import PATIENCE, DamagedLine, next_line, open_text, read_line, was_damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from .packed import Places

_HEAD = b'{"schema": 1, "time": "'  # how our own lines begin: the time is found without reading the rest


class Frames:
    """A recording that can be read at any place; used by one thread, closed by its creator.

    `times` are seconds into the recording of the samples found so far. They never go back: where the clock was set back the
    recording goes on. A sample costs 24 bytes, and every 4 MB of a packed recording's text 40 KB.
    """

    def __init__(self, path: str) -> None:
        """Open a file; raise RecordingError when it cannot be."""
        self.path = title_of(path)
        self.times: array[float] = array("d")
        self.whole = False  # whether all samples have been found
        self.damaged: list[int] = []  # numbers of the lines that are left out
        self._starts: array[int] = array("Q")
        self._numbers: array[int] = array("Q")
        self._end = self._number = 0
        self._newest = 0.0
        self._checked = False
        self._problem: RecordingError | None = None  # of the first damaged line
        places: Places = []
        try:
            self._finding, self._reading = open_text(path, places), open_text(path, places)
        except OSError as error:
            raise self._unreadable(error) from None

    def __len__(self) -> int:
        return len(self.times)

    def find(self, until: float, budget: float = float("inf")) -> None:
        """Find the looks up to one after a moment, or all there are; stop early after `budget` seconds."""
        end = time.monotonic() + budget
        while not self.whole and not (self.times and self.times[-1] > until):
            self._find_one()
            if budget < float("inf") and time.monotonic() >= end:
                return

    def at(self, moment: float) -> int:
        """Return the place of the last sample not after a moment, or of the first."""
        self.find(moment)
        return max(0, bisect_right(self.times, moment) - 1)

    def find_place(self, place: int) -> bool:
        """Find the samples up to this place; return whether there is one."""
        while not self.whole and len(self.times) <= place:
            self._find_one()
        return place < len(self.times)

    def line(self, place: int) -> bytes:
        """Read the text of a sample that has been found: a writer may have put more into it than a snapshot holds."""
        try:
            self._reading.seek(self._starts[place])
            return self._reading.readline()
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def __getitem__(self, place: int) -> Snapshot:
        """Read a sample that has been found; raise RecordingError when it is bad."""
        sample = read_line(self.path, self._numbers[place], self.line(place), from_line)
        if sample is None:
            raise RecordingError(f"{self.path} was cut off while it was read.")
        return sample

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._finding.close()
        self._reading.close()

    def _find_one(self) -> None:
        try:
            line = next_line(self.path, self._finding)
        except RecordingError:
            self.whole = True
            raise
        except (OSError, ValueError) as error:  # a file that has been closed raises the latter
            self.whole = True  # as far as it will ever be
            raise self._unreadable(error) from None
        start, self._end, self._number = self._end, self._end + len(line), self._number + 1
        if not line:
            self.whole = True
            if not self.times and (self.damaged or was_damaged(self._finding)):
                raise self._problem or RecordingError(f"{self.path} cannot be read: it is damaged.")
        elif line.strip() and (moment := self._sound_moment(line)) is not None:
            past = self.times[-1] + max(0.0, moment - self._newest) if self.times else 0.0
            self._newest = moment
            self.times.append(past)
            self._starts.append(start)
            self._numbers.append(self._number)

    def _sound_moment(self, line: bytes) -> float | None:
        """Return when a line was written; None when it was cut off or is damaged."""
        try:
            return self._moment(line)
        except DamagedLine as error:
            self._problem = self._problem or error
            if not self.times and self._number > PATIENCE:
                raise  # this is no recording
            self.damaged.append(self._number)
            return None

    def _moment(self, line: bytes) -> float | None:
        """Return when a line was written; None when it was cut off."""
        quick = has_check(line) or not self._checked
        if quick and not is_damaged(line) and line.startswith(_HEAD) and line.endswith(b"}\n"):
            self._checked |= has_check(line)
            try:
                return parse_time(line[len(_HEAD) : line.index(b'"', len(_HEAD))].decode("ascii", "replace"))
            except (RecordingError, ValueError):
                pass  # whatever it is, reading it says so
        sample = read_line(self.path, self._number, line, from_line, self._checked)
        return None if sample is None else sample.time

    def _unreadable(self, error: OSError | ValueError) -> RecordingError:
        why = "it has been closed" if isinstance(error, ValueError) else error.strerror or error
        return RecordingError(f"{self.path} cannot be read: {why}.")
