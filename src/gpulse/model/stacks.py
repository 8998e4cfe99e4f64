"""Stacks: what a program executed, the lines of code that add up from many stacks, and how recordings store them."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal, TypeAlias

    Role: TypeAlias = Literal["main", "thread", "worker"]
    Frames: TypeAlias = "tuple[Frame, ...]"
    TimedStack: TypeAlias = "tuple[Frames, float, float]"  # with the seconds in which the GPU waited and computed


class Frame(NamedTuple):
    """One frame: the line being executed and, where that is known, the call in it as it is written ("loss.item")."""

    file: str
    line: int
    function: str
    call: str = ""


class Stack(NamedTuple):
    """What one thread was executing at `time`, outermost frame first.

    `time` is in seconds of the same clock as the samples that it is joined with; the stack stands for the `seconds` around it.
    A `role` of "worker" is a process that prepares data for the process `pid` works for.
    """

    time: float
    frames: tuple[Frame, ...]
    seconds: float = 0.1
    role: Role = "main"
    thread: str = ""
    pid: int = 0


class CodeLine(NamedTuple):
    """A line of the user's own code: for how many seconds of GPU time the GPU waited, and computed, while it was executed.

    `call` is what the line was in ("loss.item", "DataLoader.__next__", "torch.save"), empty for Python code of its own. `within`
    is the library call that had called it ("DataLoader.__next__" for a line of a data set), and `role` whose line it is. `caller`
    is the line of the user's code that led there.
    """

    file: str
    line: int
    function: str
    waited: float
    computed: float
    call: str = ""
    within: str = ""
    role: Role = "main"
    caller: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return the line as reports give it."""
        plain: dict[str, Any] = {"file": self.file, "line": self.line, "function": self.function}
        return plain | {"waited": round(self.waited, 3), "computed": round(self.computed, 3)}


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
