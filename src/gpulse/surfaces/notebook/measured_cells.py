"""%%gpulse: measure a cell that IPython runs itself, so that errors, `await` and the result are those of a plain cell."""

from __future__ import annotations

from ...monitor.measure import Timing
from .cell import CellTally, cell_notes, cell_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...monitor.measurement import Measurement

_MAGIC = "%%gpulse"


class OpenCell:
    """A measurement in progress, and the text of the cell it ends with."""

    def __init__(self, name: str, source: str | None) -> None:
        self.source = source
        self._timing = Timing(name, sync=True, show=False, reset_peak=True, tally=CellTally).__enter__()

    def end(self, error: BaseException | None) -> Measurement:
        """End the measurement and return it with all its values."""
        self._timing.__exit__(None if error is None else type(error), error, None)
        self._timing.measurement.wait()
        return self._timing.measurement


class MeasuredCells:
    """The measured cells of one shell: `transform` replaces the first line of a cell by a call of `magic`, which begins to measure."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._running: list[str] = []  # the cells that run now by their text: one may run others
        self._open: list[OpenCell] = []
        # IPython then leaves it out where it asks in a terminal whether a cell is complete: a cell magic ends with an empty line
        self.transform = _Transform()

    def magic(self, line: str, cell: str) -> None:
        """Measure the rest of a cell and show what it used: `%%gpulse`, or `%%gpulse NAME`."""
        if cell.strip():  # called by a script that was exported from a notebook
            self._shell.run_cell(f"{_MAGIC} {line}\n{cell}").raise_error()
            return
        self._open.append(OpenCell(line.strip() or "cell", self._running[-1] if self._running else None))

    def started(self, info: Any) -> None:
        """Note that a cell begins."""
        self._running.append(info.raw_cell)

    def ended(self, result: Any) -> None:
        """Show what a cell used, if it was measured; `result` is None for one that was interrupted."""
        source = None if result is None else result.info.raw_cell
        if source is None and self._running:
            source = self._running[-1]
        if source in self._running:
            del self._running[len(self._running) - 1 - self._running[::-1].index(source) :]
        elif self._running:
            return  # an empty cell inside another: it was never announced
        error = KeyboardInterrupt() if result is None else result.error_before_exec or result.error_in_exec
        done = [cell for cell in self._open if cell.source is None or cell.source not in self._running]
        self._open = [cell for cell in self._open if cell not in done]
        for cell in reversed(done):
            _show(cell.end(error))


class _Transform:
    has_side_effects = True

    def __call__(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines of a cell with %%gpulse replaced by the call that begins to measure; other cells unchanged."""
        if not lines or lines[0].split(maxsplit=1)[:1] != [_MAGIC]:
            return lines
        from IPython.core.inputtransformer2 import cell_magic

        options = lines[0].strip().removeprefix(_MAGIC).strip()
        return [f"get_ipython().run_cell_magic('gpulse', {options!r}, '\\n')\n", *cell_magic(list(lines[1:]))]


def display(bundle: dict[str, str]) -> None:
    """Show an output in several formats, of which the notebook chooses one."""
    from IPython.display import display as show

    show(bundle, raw=True)


def _show(measurement: Measurement) -> None:
    from ...present.html import escape

    found = cell_notes(measurement)
    html = measurement._repr_html_() + "".join(f"<div>{escape(text)}</div>" for text in found)
    display({"text/plain": "\n".join([cell_text(measurement), *found]), "text/html": html})
    chart = measurement.tally.chart(measurement.gpus) if isinstance(measurement.tally, CellTally) else None
    if chart is not None:
        display({"text/plain": f"Chart of {measurement.name}", "image/svg+xml": chart})
