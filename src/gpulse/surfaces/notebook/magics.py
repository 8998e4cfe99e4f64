"""The IPython extension: `%load_ext gpulse` adds %gpulse and %%gpulse, and explains a cell that ran out of GPU memory."""

from __future__ import annotations

import os
import sys

from ...api import snapshot
from ...errors import GpulseError, UsageError
from ...monitor.measure import sampling_monitor
from ...monitor.out_of_memory import explain_oom
from ...monitor.report import SHORTEST, gpu_line
from ...units import parse_duration
from .cell import code_notes, named_lines
from .live_table import LiveTable
from .measured_cells import CellRecorder, MeasuredCells, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...model.snapshot import Snapshot

_FORMS = "%gpulse, why, last, top, auto SECONDS, auto off, and --demo for a simulated machine"
_LOADED: dict[int, GpulseMagics] = {}  # by id of the shell


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a shell, and explain out-of-memory errors of cells."""
    unload_ipython_extension(shell)
    _LOADED[id(shell)] = GpulseMagics(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics."""
    if (magics := _LOADED.pop(id(shell), None)) is not None:
        magics.remove()


class GpulseMagics:
    """The magics of one shell, registered until `remove`."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cells = cells = MeasuredCells(shell)
        self._table = LiveTable(shell)
        recorder = CellRecorder(shell)
        self._hooks = (
            ("pre_run_cell", lambda info: self._table.stop()),
            ("pre_run_cell", recorder.started),
            ("post_run_cell", recorder.ended),
            ("pre_run_cell", cells.started),
            ("post_run_cell", explain_failure),
            ("post_run_cell", cells.ended),
        )
        shell.register_magic_function(self.answer, "line", "gpulse")
        shell.register_magic_function(cells.magic, "cell", "gpulse")
        shell.input_transformers_cleanup.append(cells.transform)
        for event, hook in self._hooks:
            shell.events.register(event, hook)

    def remove(self) -> None:
        """Take everything back."""
        self._table.stop()
        for kind in ("line", "cell"):
            self._shell.magics_manager.magics[kind].pop("gpulse", None)
        self._shell.input_transformers_cleanup.remove(self._cells.transform)
        for event, hook in self._hooks:
            self._shell.events.unregister(event, hook)

    def answer(self, line: str) -> None:
        """Show the GPUs now (`%gpulse`) or live (`top`), what limits this kernel (`why`), or the report of the last cell (`last`).

        `auto 10` reports every cell that takes longer than 10 seconds in one line, `auto off` ends that.
        """
        words = line.split()
        source = "demo" if words[-1:] == ["--demo"] else None
        what = words[: len(words) - (source is not None)]
        try:
            if not what:
                status(source)
            elif what == ["top"]:
                self._table.show(source)
            elif what[0] == "auto" and len(what) <= 2 and source is None:
                self._report_automatically(what[1:])
            elif words == ["why"]:
                why(self._shell)
            elif words == ["last"]:
                if not self._cells.show():
                    _say("%gpulse last: no cell has been measured yet; put %%gpulse on its first line.")
            else:
                _say(f"%gpulse: {line.strip()!r} is unknown; there are {_FORMS}.")
        except UsageError as error:
            _say(f"%gpulse auto: {error}")
        except GpulseError as error:
            _say(f"gpulse: {error}\n%gpulse --demo shows a simulated machine.")

    def _report_automatically(self, words: Sequence[str]) -> None:
        """Switch the one-line report of long cells on or off, and say what holds now."""
        cells = self._cells
        if words == ["off"]:
            cells.longer_than = None
        elif words:
            cells.longer_than = parse_duration(words[0])
            sampling_monitor()  # now: its start is no part of the next cell
        now = cells.longer_than
        told = "No cell is" if now is None else f"Cells that take longer than {now:g} s are"
        sys.stdout.write(f"{told} reported automatically.\n")


def why(shell: Any) -> None:
    """Show what limited this kernel since it is sampled: since its first measured cell, or the start of its Monitor."""
    from ...monitor.report import limits
    from ...present.html import diagnosis_html, escape
    from ...present.program import own_lines
    from ...units import duration_text

    monitor = sampling_monitor()
    summary = None if monitor is None else monitor.summary()
    if summary is None or not summary.samples or summary.seconds < SHORTEST:
        _say("%gpulse why: sampling has just begun; run some cells, then ask again.")
        return
    head = f"This kernel in the last {duration_text(summary.seconds)}:"
    notes = own_lines(summary.gpus)
    summary.code = named_lines(summary.code, shell.compile)
    found = limits(summary) or ([] if all(gpu.own.used is False for gpu in summary.gpus) else ["  → nothing to report"])
    html = "".join(f"<div>{escape(text)}</div>" for text in (*code_notes(summary.code, summary.seconds), *notes))
    html = f"<div>{escape(head)}</div>{diagnosis_html(summary.diagnosis) if summary.diagnosis else ''}{html}"
    display({"text/plain": "\n".join([head, *found, *(f"  {text}" for text in notes)]), "text/html": html})


def status(source: str | None) -> None:
    """Show the current state of the GPUs."""
    taken = snapshot(source=source)
    display({"text/plain": status_text(taken), "text/html": taken._repr_html_()})


def status_text(taken: Snapshot) -> str:
    """Return a line for each GPU."""
    lines = [gpu_line(gpu, int(at if gpu.index is None else gpu.index)) for at, gpu in enumerate(taken.gpus)]
    return "\n".join(lines or ["No GPU was found."])


def explain_failure(result: Any) -> None:
    """Explain an out-of-memory error below the traceback of a cell; other errors are left alone."""
    error = getattr(result, "error_in_exec", None)
    if error is not None and (account := explain_oom(error)) is not None:
        _say(str(account))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}{os.linesep}")
