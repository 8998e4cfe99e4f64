"""The IPython extension: `%load_ext gpulse` adds %gpulse and %%gpulse, and explains a cell that ran out of GPU memory."""

from __future__ import annotations

import os

from ...api import snapshot
from ...errors import GpulseError
from ...monitor.measure import Measure
from ...monitor.out_of_memory import explain_oom
from ...monitor.report import gpu_line
from .cell import CellTally, cell_text, cell_verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.snapshot import Snapshot

_HANDLERS: dict[int, Any] = {}


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a shell, and explain out-of-memory errors of cells."""
    shell.register_magic_function(lambda line: status(line), "line", "gpulse")
    shell.register_magic_function(lambda line, cell: measure_cell(shell, line, cell), "cell", "gpulse")
    if id(shell) not in _HANDLERS:
        _HANDLERS[id(shell)] = explain_failure
        shell.events.register("post_run_cell", explain_failure)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("gpulse", None)
    if (handler := _HANDLERS.pop(id(shell), None)) is not None:
        shell.events.unregister("post_run_cell", handler)


def status(line: str) -> None:
    """Show the current state of the GPUs: `%gpulse`, or `%gpulse --demo` for a simulated machine."""
    words = line.split()
    if unknown := [word for word in words if word != "--demo"]:
        _say(f"%gpulse: {unknown[0]!r} is not an option; there is only --demo.")
        return
    try:
        taken = snapshot(source="demo" if words else None)
    except GpulseError as error:
        _say(f"gpulse: {error}\n%gpulse --demo shows a simulated machine.")
        return
    _show({"text/plain": status_text(taken), "text/html": taken._repr_html_()})


def status_text(taken: Snapshot) -> str:
    """Return a line for each GPU."""
    lines = [gpu_line(gpu, int(at if gpu.index is None else gpu.index)) for at, gpu in enumerate(taken.gpus)]
    return "\n".join(lines or ["No GPU was found."])


def measure_cell(shell: Any, line: str, cell: str) -> None:
    """Run a cell and show its measurements: `%%gpulse`, or `%%gpulse NAME`."""
    name = line.strip() or "cell"
    measure = Measure(name, sync=True, show=False, reset_peak=True, tally=CellTally)
    with measure as measurement:
        result = shell.run_cell(cell)
        measurement.failed = not result.success
    measurement.failed = not result.success
    measurement.wait()
    found = cell_verdict(measurement)
    html = measurement._repr_html_() + "".join(f"<div>{_escaped(text)}</div>" for text in found)
    _show({"text/plain": "\n".join([cell_text(measurement), *found]), "text/html": html})
    chart = measurement.tally.chart() if isinstance(measurement.tally, CellTally) else None
    if chart is not None:
        _show({"text/plain": f"Chart of {name}", "image/svg+xml": chart})


def explain_failure(result: Any) -> None:
    """Explain an out-of-memory error below the traceback of a cell; other errors are left alone."""
    error = getattr(result, "error_in_exec", None)
    if error is not None and (account := explain_oom(error)) is not None:
        _say(str(account))


def _escaped(text: str) -> str:
    from ...present.html import escape

    return escape(text)


def _show(bundle: dict[str, str]) -> None:
    from IPython.display import display

    display(bundle, raw=True)


def _say(text: str) -> None:
    import sys

    sys.stderr.write(f"{text}{os.linesep}")
