"""Stacks: what a program was executing at one moment, and the lines of code that add up from many such moments."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    Role: TypeAlias = Literal["main", "thread", "worker"]
    Frames: TypeAlias = "tuple[Frame, ...]"
    TimedStack: TypeAlias = (
        "tuple[Frames, float, float]"  # a stack with the seconds in which the GPU waited and computed
    )


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
        return {
            "file": self.file,
            "line": self.line,
            "function": self.function,
            "waited": round(self.waited, 3),
            "computed": round(self.computed, 3),
        }
