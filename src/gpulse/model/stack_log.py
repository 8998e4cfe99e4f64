"""Stacks in a recording: what was added since the line before, each frame written once and then called by its number."""

from __future__ import annotations

from .stacks import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .stacks import Frames, TimedStack

_MOST_FRAMES = 100_000  # of one recording
_DEEPEST = 1000  # frames of one stack


class StackWriter:
    """Turns the stacks of a run so far into what is new since the last call."""

    def __init__(self) -> None:
        self._numbers: dict[Frame, int] = {}
        self._seconds: dict[Frames, tuple[float, float]] = {}

    def new(self, stacks: Iterable[TimedStack]) -> dict[str, Any] | None:
        """Return new frames by number, and stacks with the seconds waited and computed since the last call; None if there are none."""
        frames: dict[str, list[Any]] = {}
        times = []
        for stack, waited, computed in stacks:
            before = self._seconds.get(stack, (0.0, 0.0))
            change = round(waited - before[0], 4), round(computed - before[1], 4)
            if change == (0.0, 0.0):
                continue
            self._seconds[stack] = before[0] + change[0], before[1] + change[1]
            for frame in stack:
                if frame not in self._numbers:
                    self._numbers[frame] = len(self._numbers)
                    frames[str(self._numbers[frame])] = [*frame]
            times.append([[self._numbers[frame] for frame in stack], *change])
        return {"frames": frames, "times": times} if times else None


class StackReader:
    """Adds up what a StackWriter wrote; what is damaged is left out."""

    def __init__(self) -> None:
        self._frames: dict[int, Frame] = {}
        self._seconds: dict[Frames, list[float]] = {}

    def add(self, plain: object) -> None:
        """Take what one line says."""
        if not isinstance(plain, dict):
            return
        frames, times = plain.get("frames"), plain.get("times")
        for number, values in frames.items() if isinstance(frames, dict) else ():
            if number.isdecimal() and (frame := _frame(values)) is not None and len(self._frames) < _MOST_FRAMES:
                self._frames[int(number)] = frame
        for entry in times if isinstance(times, list) else ():
            if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], list):
                self._count(*entry)

    def _count(self, numbers: list[object], waited: object, computed: object) -> None:
        known = [self._frames.get(number) if isinstance(number, int) else None for number in numbers[:_DEEPEST]]
        stack = tuple(frame for frame in known if frame is not None)
        if len(stack) == len(known) and isinstance(waited, (int, float)) and isinstance(computed, (int, float)):
            seconds = self._seconds.setdefault(stack, [0.0, 0.0])
            seconds[0] += waited
            seconds[1] += computed

    def stacks(self) -> list[TimedStack]:
        """Return every stack with its seconds."""
        return [(stack, max(0.0, waited), max(0.0, computed)) for stack, (waited, computed) in self._seconds.items()]


def _frame(values: object) -> Frame | None:
    if not isinstance(values, list) or len(values) != 4:
        return None
    file, line, function, call = values
    if isinstance(file, str) and isinstance(line, int) and isinstance(function, str) and isinstance(call, str):
        return Frame(file, line, function, call)
    return None
