"""The IPython extension: `%load_ext gpulse` adds %gpulse and %%gpulse, and explains a cell that ran out of GPU memory."""

from __future__ import annotations

import os

from ...api import snapshot
from ...errors import GpulseError
from ...monitor.out_of_memory import explain_oom
from ...monitor.report import gpu_line
from .measured_cells import MeasuredCells, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.snapshot import Snapshot

_LOADED: dict[int, MeasuredCells] = {}  # by id of the shell


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a shell, and explain out-of-memory errors of cells."""
    unload_ipython_extension(shell)
    cells = _LOADED[id(shell)] = MeasuredCells(shell)
    shell.register_magic_function(status, "line", "gpulse")
    shell.register_magic_function(cells.magic, "cell", "gpulse")
    shell.input_transformers_cleanup.append(cells.transform)
    shell.events.register("pre_run_cell", cells.started)
    shell.events.register("post_run_cell", explain_failure)
    shell.events.register("post_run_cell", cells.ended)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("gpulse", None)
    if (cells := _LOADED.pop(id(shell), None)) is not None:
        shell.input_transformers_cleanup.remove(cells.transform)
        shell.events.unregister("pre_run_cell", cells.started)
        shell.events.unregister("post_run_cell", explain_failure)
        shell.events.unregister("post_run_cell", cells.ended)


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
    import sys

    sys.stderr.write(f"{text}{os.linesep}")
