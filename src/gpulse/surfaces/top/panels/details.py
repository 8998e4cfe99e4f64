"""One process in full: its command line, its GPUs, what it takes from the host, who owns it, and its environment."""

from __future__ import annotations

from itertools import chain

from ....model.catalog import PROCESS_METRICS, Process
from ....present.cells import MISSING, value_text
from ....present.code import stack_lines
from ....present.line import Line
from ....present.plot import mini
from ....present.program import running_parts
from ....present.text import clean, fit, width
from ....present.verdicts import QUIET, advice, evidence, gpu_name, title
from ....present.verdicts import style as verdict_style
from ....sources.secrets import MASK, mask
from ....units import PERCENT, size_text
from ..history import KEYS
from ..processes import all_rows
from .dialogs import paint_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from ....screen.grid import Grid
    from ..layout import Area
    from ..processes import ProcessRow
    from ..state import State

    Facts: TypeAlias = Callable[[int], dict[str, str]]

_LABEL = 16
_FRAMES = 12  # of each thread
_FEWEST = 3  # looks below which a chart says nothing
_HOST = (Process.cpu_percent, Process.tree_cpu_percent, Process.children, Process.host_memory, Process.running_time)
_OWNER = (Process.container, Process.pod, Process.job)
_PER_GPU = (
    Process.sm_utilization, Process.memory_utilization, Process.encoder_utilization, Process.decoder_utilization
)  # fmt: skip
# Endings of variables that hold secrets although no word in them says so; PWD itself is a directory.
_SECRET_ENDS = ("_KEY", "_PASS", "_PWD", "_PASSPHRASE", "_COOKIE", "_DSN", "_TOKENS", "_SAS", "_PAT")


def hidden(name: str, value: str) -> str:
    """Return the value of a variable, masked where its name or its shape looks like a secret."""
    if value and name.upper().endswith(_SECRET_ENDS):
        return MASK
    shown = mask([f"{name}={value}"])
    return shown.removeprefix(f"{name}=") if shown.startswith(f"{name}=") else MASK


def paint(grid: Grid, area: Area, state: State, facts: Facts) -> None:
    """Draw the selected process in a box.

    `facts` gives by pid the texts `directory` and `cgroup`, and variables of the environment as $NAME. It is called at every
    frame, so it should answer from memory.
    """
    columns = max(1, area.columns - 4)
    title = "Process" if state.selected is None else f"Process {state.selected}"
    paint_text(grid, area, state, title, _lines(state, facts, columns), columns)


def _lines(state: State, facts: Facts, columns: int) -> list[Line]:
    """Return everything about the selected process, wrapped; a process that is gone is said to be."""
    found = [row for row in all_rows(state.shown) if row.pid == state.selected] if state.shown else []
    if not found:
        words = "no process selected" if state.selected is None else f"process {state.selected} no longer uses a GPU"
        return [Line().add(words, "label")]
    more = facts(state.selected or 0)
    entries = (
        _who(found),
        _run(state),
        _gpus(found, state),
        _limits(found, state),
        _known(found[0].process, state),
        _facts(more),
    )
    laid: list[Line] = []
    for name, text, style in chain(*entries):
        name = fit(name, min(_LABEL, columns // 3), state.theme.more)
        laid += _wrapped(name, state.theme.spelled(clean(text)), style, columns)
    laid += _charts(state, columns)
    laid += _stacks(state, columns)
    variables = sorted(name for name in more if name.startswith("$"))
    laid += [Line(), Line().add("Environment" if variables else "Environment: cannot be read", "title")]
    for name in variables:
        laid += _wrapped("", state.theme.spelled(clean(f"{name[1:]}={hidden(name[1:], more[name])}")), "", columns, 2)
    return laid


def _stacks(state: State, columns: int) -> Iterator[Line]:
    """Return what the threads of the process execute now, the main thread first, or why that is not known."""
    if state.stack_problem:
        yield Line()
        yield from _wrapped("Stack", state.theme.spelled(clean(state.stack_problem)), "label", columns)
    elif state.stacks:
        yield Line()
        yield Line().add("Stack, read now without pausing the process", "title")
        for line in stack_lines(state.stacks, _FRAMES):
            yield Line().add("  ").extend(line)


def _charts(state: State, columns: int) -> Iterator[Line]:
    """Return a small chart of each thing the process used at the last samples, the newest at the right."""
    for key in KEYS:
        seen = state.past.series(state.selected or 0, key)[-max(0, columns - _LABEL - 24) :]
        known = [value for value in seen if value is not None]
        if len(known) < _FEWEST:
            continue
        metric, most = PROCESS_METRICS[key], max(known) or 1.0
        if metric.unit is PERCENT:
            most = max(100.0, most)
        bars = "".join(" " if value is None else mini(value / most, state.theme.unicode) for value in seen)
        least, largest = (value_text(metric, value, state.settings.decimal) for value in (min(known), max(known)))
        line = Line().add(metric.title, "label", min(_LABEL, columns // 3)).add(bars, "busy")
        yield line.add(f"  {least} to {largest}", "label")


def _who(found: list[ProcessRow]) -> Iterator[tuple[str, str, str]]:
    process = found[0].process
    yield "Command", process.command or process.name or MISSING, "title"
    yield "PID", f"{found[0].pid}", ""
    yield "Name", process.name or MISSING, ""
    yield "User", process.user or MISSING, "user"


def _run(state: State) -> Iterator[tuple[str, str, str]]:
    """Return how the run goes, as a Monitor in the process says."""
    if state.run is not None:
        yield from ((label, text, "busy") for label, text in running_parts(state.run))


def _gpus(found: list[ProcessRow], state: State) -> Iterator[tuple[str, str, str]]:
    decimal = state.settings.decimal
    for row in found:
        words = [value_text(Process.memory_used, row.process.memory_used, decimal)]
        known = [(metric, value) for metric in _PER_GPU if (value := row.process.get(metric.key)) is not None]
        words += [f"{metric.short} {value_text(metric, value)}" for metric, value in known]
        if row.process.type:
            words.append(f"type {row.process.type}")
        yield f"GPU {row.gpu}", "  ".join(words), "memory"
    if len(found) > 1:
        yield "All GPUs", size_text(sum(row.process.memory_used or 0 for row in found), decimal=decimal), "memory"


def _limits(found: list[ProcessRow], state: State) -> Iterator[tuple[str, str, str]]:
    """Return what limits the GPUs of the process: the sentence, the numbers, and what to try."""
    mine = {str(row.gpu) for row in found}
    pids = {row.process.pid for row in found}
    for verdict in state.diagnosis:
        other = verdict.instance and pids.isdisjoint(one.pid for one in verdict.processes)
        if str(verdict.index) in mine and verdict.key not in QUIET and not other:
            yield f"Why {gpu_name(verdict)}", title(verdict), verdict_style(verdict)
            for text in evidence(verdict):
                yield "", text, ""
            for text in advice(verdict):
                yield "", f"Try: {text}", "label"


def _known(process: Process, state: State) -> Iterator[tuple[str, str, str]]:
    for metric in (*_HOST, *_OWNER):
        value = process.get(metric.key)
        if value is not None:
            yield metric.title, value_text(metric, value, state.settings.decimal), ""
        elif process.gaps.get(metric.key) == "denied":
            yield metric.title, "no permission", "warn"


def _facts(more: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    if "directory" in more:
        yield "Directory", more["directory"], ""
    # the different paths in /proc/PID/cgroup; the root only where there is no other
    paths = dict.fromkeys(line.split(":", 2)[-1] for line in more.get("cgroup", "").splitlines() if line)
    for at, path in enumerate([path for path in paths if path != "/"] or paths):
        yield "" if at else "Control group", path, ""


def _wrapped(name: str, text: str, style: str, columns: int, inset: int = _LABEL) -> list[Line]:
    """Return lines of a label and text beside it, broken at blanks where there are some, and hard where there are none."""
    inset = min(inset, columns // 3)
    laid: list[Line] = []
    for part in _broken(text, max(1, columns - inset)):
        label = name if not laid else ""
        laid.append(Line().add(label, "label", inset).add(part, style))
    return laid


def _broken(text: str, cells: int) -> Iterator[str]:
    if text.isascii():
        while len(text) > cells:
            at = text.rfind(" ", cells // 2, cells + 1)
            at = at if at > 0 else cells
            yield text[:at]
            text = text[at:].lstrip(" ")
        yield text
        return
    part, used = "", 0
    for char in text:
        wide = width(char)
        if used + wide > cells and part:
            yield part
            part, used = "", 0
        part, used = part + char, used + wide
    yield part
