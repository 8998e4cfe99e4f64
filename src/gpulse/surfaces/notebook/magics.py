"""The IPython extension: `%load_ext gpulse` adds %gpulse and %%gpulse, and explains a cell that ran out of GPU memory."""

from __future__ import annotations

import os

from ...api import snapshot
from ...errors import GpulseError
from ...monitor.out_of_memory import explain_oom
from ...monitor.report import SHORTEST, gpu_line
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
    shell.register_magic_function(lambda line: answer(line, cells), "line", "gpulse")
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


def answer(line: str, cells: MeasuredCells) -> None:
    """Show the current state of the GPUs (`%gpulse`), what limits this kernel (`why`), or the report of the last cell (`last`)."""
    words = line.split()
    if words == ["why"]:
        why()
    elif words == ["last"]:
        if not cells.show():
            _say("%gpulse last: no cell has been measured yet; put %%gpulse on its first line.")
    elif words in ([], ["--demo"]):
        status("demo" if words else None)
    else:
        _say(f"%gpulse: {line.strip()!r} is unknown; there are %gpulse, why, last, and --demo for a simulated machine.")


def why() -> None:
    """Show what limited this kernel since it is sampled: since its first measured cell, or the start of its Monitor."""
    from ...monitor.quiet import sampling_monitor
    from ...monitor.report import limits
    from ...present.html import diagnosis_html, escape
    from ...present.own_use import own_lines
    from ...units import duration_text

    monitor = sampling_monitor()
    summary = None if monitor is None else monitor.summary()
    if summary is None or not summary.samples or summary.seconds < SHORTEST:
        _say("%gpulse why: sampling has just begun; run some cells, then ask again.")
        return
    head = f"This kernel in the last {duration_text(summary.seconds)}:"
    notes = own_lines(summary.gpus)
    found = limits(summary) or ([] if all(gpu.own.used is False for gpu in summary.gpus) else ["  → nothing to report"])
    html = "".join(f"<div>{escape(text)}</div>" for text in notes)
    html = f"<div>{escape(head)}</div>{diagnosis_html(summary.diagnosis) if summary.diagnosis else ''}{html}"
    display({"text/plain": "\n".join([head, *found, *(f"  {text}" for text in notes)]), "text/html": html})


def status(source: str | None) -> None:
    """Show the current state of the GPUs."""
    try:
        taken = snapshot(source=source)
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
