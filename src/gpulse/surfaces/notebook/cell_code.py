"""The lines of a cell at which the GPU waited, named as the notebook names its cells."""

from __future__ import annotations

from ...analysis.code_lines import code_lines
from ...monitor.measure import sampling_monitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...model.stacks import CodeLine, Frame, Frames


class CellCode:
    """What the kernel executes from now on, while one cell runs; `copies` of its text if it is repeated."""

    def __init__(self, copies: int = 1) -> None:
        monitor = sampling_monitor()
        self._ledger = None if monitor is None else monitor.ledger
        self._copies = copies
        self._before = self._stacks()

    def lines(self, compiler: Any, result: Any) -> list[CodeLine]:
        """Return the lines so far, the longest wait first; of functions of other cells, too, as far as this cell called them."""
        number = getattr(result, "execution_count", None)
        if number is None:
            return []
        height = len((getattr(result.info, "transformed_cell", None) or "").splitlines()) // self._copies
        found = []
        for frames, (waited, computed) in self._stacks().items():
            named = tuple(_named(frame, compiler) for frame in frames)
            if any(frame.file == _cell(number) for frame in named):
                known = self._before.get(frames, (0.0, 0.0))
                once = tuple(_once(frame, _cell(number), height) for frame in named)
                found.append((once, max(0.0, waited - known[0]), max(0.0, computed - known[1])))
        return [*code_lines(found)]

    def _stacks(self) -> dict[Frames, tuple[float, float]]:
        code = None if self._ledger is None else self._ledger.code
        return {} if code is None else {frames: (waited, computed) for frames, waited, computed in code.stacks()}


def named_lines(lines: Iterable[CodeLine], compiler: Any) -> list[CodeLine]:
    """Return lines of code with cells in place of the files that they were compiled as."""
    return [line._replace(file=_name(line.file, compiler)) for line in lines]


def _named(frame: Frame, compiler: Any) -> Frame:
    return frame._replace(file=_name(frame.file, compiler))


def _name(file: str, compiler: Any) -> str:
    """Return "In [3]" for the file that the shell compiled that cell as, other files unchanged."""
    known = compiler.format_code_name(file)
    return file if known is None else known[1].replace("In[", "In [")


def _cell(number: int) -> str:
    return f"In [{number}]"


def _once(frame: Frame, cell: str, height: int) -> Frame:
    """Return a frame of a repeated cell at its line of the text that is written once."""
    return frame._replace(line=(frame.line - 1) % height + 1) if height and frame.file == cell else frame
