"""%gpulse and %%gpulse, and the measurement of every cell while measuring is on."""

from __future__ import annotations

import os
import sys
import time

from ...api import snapshot
from ...errors import GpulseError, UsageError
from ...monitor.measure import Timing
from ...monitor.out_of_memory import explain_oom
from ...monitor.quiet import QUIET_MONITOR
from ...monitor.report import SHORTEST, gpu_line
from ...store.cell_log import CellLog, CellSpan, first_line, remove_left_behind
from ...units import parse_duration
from .cell import CellCode, CellTally, cell_facts, cell_notes, cell_text, code_notes, named_lines
from .live_table import LiveTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from ...model.snapshot import Snapshot
    from ...model.stacks import CodeLine
    from ...monitor.measurement import Measurement

    Output: TypeAlias = tuple[dict[str, str], dict[str, Any]]  # by format, and metadata by format

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
            QUIET_MONITOR.sampling()  # now: its start is no part of the next cell
        now = cells.longer_than
        told = "No cell is" if now is None else f"Cells that take longer than {now:g} s are"
        sys.stdout.write(f"{told} reported automatically.\n")


def why(shell: Any) -> None:
    """Show what limited this kernel since it is sampled: since its first measured cell, or the start of its Monitor."""
    from ...monitor.report import limits
    from ...present.html import diagnosis_html, escape
    from ...present.program import own_lines
    from ...units import duration_text

    monitor = QUIET_MONITOR.sampling()
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


_MAGIC = "%%gpulse"
_MOST_RUNS = 1000
RESULT = "_gpulse"  # the variable of the notebook that holds the last measurement


class OpenCell:
    """A measurement in progress of a cell, which is the text `source`; with `repeat` one of each run.

    One that is measured only to be told if it takes long (`automatic`) neither waits for the GPU nor resets torch's peak.
    """

    def __init__(self, name: str, repeat: int, source: str | None, automatic: bool = False) -> None:
        self.source = source
        self.left = repeat
        self.automatic = automatic
        self._name = name
        self._runs: list[Timing] = []
        self.begin()
        self.code = CellCode(repeat)

    def begin(self) -> None:
        """Begin the next run, which ends the one before."""
        if self._runs:
            self._runs[-1].__exit__(None, None, None)
        self.left -= 1
        asked = not self.automatic
        run = Timing(
            self._name, sync=asked, show=False, reset_peak=asked, tally=CellTally, in_background=self.automatic
        )
        self._runs.append(run.__enter__())

    def end(self, error: BaseException | None) -> list[Measurement]:
        """End the last run and return all; their values may still be on the way."""
        self._runs[-1].__exit__(None if error is None else type(error), error, None)
        return [run.measurement for run in self._runs]


class MeasuredCells:
    """The measured cells of one shell: `transform` replaces the first line of a cell by a call of `magic`, which begins to measure."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._running: list[str] = []  # the cells that run now by their text: one may run others
        self._open: list[OpenCell] = []
        self._last: list[Measurement] = []
        self._code: list[CodeLine] = []  # of that cell
        # seconds from which a cell without the magic is reported in one line; None: never
        self.longer_than: float | None = None
        self.transform = CellTransform()

    def magic(self, line: str, cell: str) -> None:
        """Measure the rest of a cell and show what it used: `%%gpulse [--repeat N] [NAME]`. The result is also in `_gpulse`."""
        if cell.strip():  # called by a script that was exported from a notebook
            self._shell.run_cell(f"{_MAGIC} {line}\n{cell}").raise_error()
            return
        try:
            name, repeat = options_of(line)
        except UsageError as error:
            from IPython.core.error import UsageError as ShellError

            raise ShellError(str(error)) from None
        source = self._running[-1] if self._running else None
        if self._open and self._open[-1].source == source and self._open[-1].left:
            self._open[-1].begin()
        else:
            self._open.append(OpenCell(name, repeat, source))

    def started(self, info: Any) -> None:
        """Note that a cell begins."""
        self._running.append(info.raw_cell)
        if self.longer_than is not None and len(self._running) == 1:
            self._open.append(OpenCell("cell", 1, info.raw_cell, automatic=True))

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
        asked = any(not cell.automatic for cell in done)
        for cell in reversed(done):
            runs = cell.end(error)
            if cell.automatic and (asked or self.longer_than is None or runs[0].seconds < self.longer_than):
                continue
            for run in runs:
                run.wait()
            self._last, self._code = runs, cell.code.lines(self._shell.compile, result)
            self._shell.user_ns[RESULT] = runs[0] if len(runs) == 1 else runs
            if cell.automatic:
                number = getattr(result, "execution_count", None)
                runs[0].name = "cell" if number is None else f"In [{number}]"
                display({"text/plain": cell_text(runs)})
            else:
                self.show()

    def show(self) -> bool:
        """Show the report of the last cell again; return False if there is none."""
        for bundle, metadata in outputs(self._last, self._code) if self._last else ():
            display(bundle, metadata)
        return bool(self._last)


class CellTransform:
    """The input transformation of IPython that replaces %%gpulse by the call that begins to measure."""

    # IPython then leaves it out where it asks in a terminal whether a cell is complete: a cell magic ends with an empty line
    has_side_effects = True

    def __call__(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines of a cell, once for each run; other cells unchanged."""
        if not lines or lines[0].split(maxsplit=1)[:1] != [_MAGIC]:
            return lines
        from IPython.core.inputtransformer2 import cell_magic

        options = lines[0].strip().removeprefix(_MAGIC).strip()
        try:
            _, repeat = options_of(options)
        except UsageError:
            repeat = 1  # the call reports it
        body = [line if line.endswith("\n") else f"{line}\n" for line in cell_magic(list(lines[1:]))]
        return [f"get_ipython().run_cell_magic('gpulse', {options!r}, '\\n')\n", *body] * repeat


def options_of(line: str) -> tuple[str, int]:
    """Return the name of a cell, and how many times to run it; raise UsageError for what cannot be read."""
    words, repeat = line.split(), 1
    if words and words[0].startswith("--"):
        option, _, count = words.pop(0).partition("=")
        if option != "--repeat":
            raise UsageError(f"%%gpulse: unknown option {option!r};", "there is only `%%gpulse --repeat N`.")
        count = count or (words.pop(0) if words else "")
        if not count.isdecimal() or not 1 <= int(count) <= _MOST_RUNS:
            raise UsageError(
                f"%%gpulse: {count!r} is not a number of runs from 1 to {_MOST_RUNS};",
                "for example `%%gpulse --repeat 5`.",
            )
        repeat = int(count)
    return " ".join(words) or "cell", repeat


def outputs(runs: Sequence[Measurement], code: Sequence[CodeLine] = ()) -> list[Output]:
    """Return the report of a cell as outputs of a notebook: a table with notes, and a chart of its last run."""
    from ...present.html import budget_html, escape, measurement_html
    from ...present.verdicts import time_lines

    last = runs[-1]
    notes, spent = cell_notes(runs, code)
    html = measurement_html(cell_facts(runs), last.gpus) + "".join(f"<div>{escape(text)}</div>" for text in notes)
    html += "".join(f"<div>{escape(name)} time{budget_html(budget)}</div>" for name, budget in spent)
    text = "\n".join([cell_text(runs), *notes, *time_lines(spent)])
    found: list[Output] = [({"text/plain": text, "text/html": html}, {})]
    tally = last.tally
    if isinstance(tally, CellTally) and (chart := tally.chart(last.gpus)) is not None:
        found.append(({"text/plain": tally.chart_text(last.gpus), **chart.bundle()}, chart.metadata()))
    return found


def display(bundle: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
    """Show an output in several formats, of which the notebook chooses one."""
    from IPython.display import display as show

    show(bundle, raw=True, metadata=metadata)


class CellRecorder:
    """Two hooks of IPython around each cell; whatever goes wrong here, the cell does not notice.

    A shell that is no kernel of Jupyter has nothing to record.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._log = _log(shell)
        self._open: tuple[CellSpan, Any] | None = None  # the cell that runs, and how IPython knows it

    def started(self, info: Any) -> None:
        """Note that a cell begins."""
        try:
            message = self._shell.get_parent()
            id = str(message["header"]["msg_id"])
            if self._log is None or info.silent or not info.store_history or self._is_open(id):
                return
            cell = getattr(info, "cell_id", None) or (message.get("metadata") or {}).get("cellId")
            span = CellSpan(id, cell, None, first_line(info.raw_cell or ""), time.time())
            self._open = span, info
            self._log.append(span)
        except Exception:  # noqa: BLE001, S110
            pass

    def ended(self, result: Any) -> None:
        """Note how it ended; `result` is None for a cell that was interrupted early."""
        try:
            if self._log is None or self._open is None or (result is not None and result.info is not self._open[1]):
                return  # one that the cell ran
            (span, _), self._open = self._open, None
            span.count = getattr(result, "execution_count", None)  # before, it depends on the version of IPython
            interrupted = result is None or isinstance(result.error_in_exec, KeyboardInterrupt)
            span.end, span.ok = time.time(), "interrupted" if interrupted else bool(result.success)
            self._log.append(span)
        except Exception:  # noqa: BLE001, S110
            pass

    def _is_open(self, id: str) -> bool:
        """Return whether a cell that runs was asked for by this message: it may run others, which count as part of it."""
        return self._open is not None and self._open[0].id == id


def _log(shell: Any) -> CellLog | None:
    """Return the file of this kernel; None in a shell that is no kernel of Jupyter."""
    if "ipykernel" not in sys.modules or getattr(shell, "kernel", None) is None:
        return None
    try:
        from ipykernel.connect import get_connection_file

        path = os.path.abspath(get_connection_file())
    except Exception:  # noqa: BLE001
        return None
    remove_left_behind(os.path.dirname(path))
    return CellLog(path)
