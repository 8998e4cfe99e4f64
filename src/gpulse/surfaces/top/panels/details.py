"""Boxes with text, the base of all dialogs and menus; and one process in full: command line, GPUs, use of the host, owner, environment."""

from __future__ import annotations

from itertools import chain

from ....model.catalog import PROCESS_METRICS, Process
from ....present.cells import MISSING, value_text
from ....present.code import stack_lines
from ....present.explanation import explained
from ....present.line import Line, wrapped_lines
from ....present.plot import mini
from ....present.program import running_parts
from ....present.text import clean, fit, pad, width
from ....present.verdicts import QUIET, advice, evidence, gpu_name, title
from ....present.verdicts import style as verdict_style
from ....sources.secrets import MASK, mask
from ....units import PERCENT, size_text
from ..history import KEYS
from ..layout import Area
from ..processes import all_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from ....screen.grid import Grid
    from ..processes import ProcessRow
    from ..state import State

    Facts: TypeAlias = Callable[[int], dict[str, str]]
    from collections.abc import Sequence

    from ....present.theme import Theme

    Table: TypeAlias = Sequence[tuple[str, str]]

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


_GLYPHS = ("╭╮╰╯─│", "++++-|")
_BETWEEN = 3  # cells between two columns of the help
_ENOUGH = 30  # minimum cells for descriptions to use a second column
_NARROW = 16  # with less space than this next to the keys, descriptions go below them
# What colors and marks mean: how it looks with and without Unicode, its style, and the meaning.
LEGEND = (
    ("██", "##", "busy", "activity: utilization, SM, tensor, DRAM, engines"),
    ("██", "##", "memory", "memory"),
    ("██", "##", "chart3", "power, temperature, clocks"),
    ("██", "##", "chart4", "PCIe and NVLink traffic"),
    ("██", "##", "warn", "near a limit, or a problem that slows work down"),
    ("██", "##", "critical", "failed, throttled by heat, or at a limit"),
    ("!", "!", "critical", "a line of GPUs without room for words: select it and press Enter"),
    ("-", "-", "calm", "no value: not supported or not readable"),
    ("…", "~", "calm", "value still being measured, or text cut off"),
    ("↑3 ↓5", "^3 v5", "warn", "more above and below: scroll with keys or the wheel"),
)


def box(grid: Grid, area: Area, theme: Theme, title: str, rows: int, columns: int, foot: str = "") -> Area:
    """Draw a centered frame for `rows` by `columns` of content, and return its cleared inner area.

    It is never larger than the area; if there is no space for a frame, the whole area is returned.
    `title` is in the upper edge and `foot` in the lower one.
    """
    frame, inside = placed(area, rows, columns)
    top, left, wide, end = frame.row, frame.column, frame.columns, frame.end - 1
    grid.fill(top, left, frame.rows, wide)
    if inside is frame:
        return frame
    upper_left, upper_right, lower_left, lower_right, across, down = tuple(theme.glyph(*_GLYPHS))
    grid.put(top, left, upper_left + across * (wide - 2) + upper_right, "border")
    for row in range(top + 1, end):
        grid.put(row, left, down, "border")
        grid.put(row, left + wide - 1, down, "border")
    grid.put(end, left, lower_left + across * (wide - 2) + lower_right, "border")
    if wide >= 7:  # an edge cell, a corner and a space on each side, and some text
        if title:
            grid.put(top, left + 2, f" {fit(theme.spelled(title), wide - 6, theme.more)} ", "title")
        if foot and width(foot) <= wide - 6:
            grid.put(end, left + wide - 4 - width(foot), f" {foot} ", "label")
    return inside


def placed(area: Area, rows: int, columns: int) -> tuple[Area, Area]:
    """Return the frame that `box` draws and the area inside it; both are the same where there is no space for a frame."""
    tall, wide = min(area.rows, rows + 2), min(area.columns, columns + 4)
    top, left = area.row + (area.rows - tall) // 2, area.column + (area.columns - wide) // 2
    frame = Area(top, left, tall, wide)
    return frame, frame if tall < 3 or wide < 5 else Area(top + 1, left + 2, tall - 2, wide - 4)


def paint_text(grid: Grid, area: Area, state: State, title: str, lines: Sequence[Line], columns: int) -> None:
    """Draw lines in a box; `state.choice` is the first line seen, moved back where it is beyond the end."""
    rows = max(1, area.rows - 2)
    first = state.choice = max(0, min(state.choice, len(lines) - rows))
    foot = f"{first + 1}-{min(first + rows, len(lines))}/{len(lines)}" if len(lines) > rows else ""
    inside = box(grid, area, state.theme, title, len(lines), columns, foot)
    for at, line in enumerate(lines[first : first + inside.rows], inside.row):
        grid.line(at, inside.column, line, inside.columns)


def paint_why(grid: Grid, area: Area, state: State) -> None:
    """Draw what limits each GPU, with the numbers behind it and what to try: `gpulse why` over the last minute."""
    columns = max(1, area.columns - 4)
    lines = [Line().add("judging needs about ten seconds of samples", "label")]
    if state.diagnosis.verdicts:
        gpus = state.live.gpus if state.live else ()
        names = {None if gpu.index is None else int(gpu.index): gpu.name or "" for gpu in gpus}
        lines = explained(state.diagnosis, names, state.theme, columns)
    paint_text(grid, area, state, "Why", lines, columns)


def paint_help(grid: Grid, area: Area, state: State, table: Table) -> None:
    """Draw the keys and their actions, then the legend."""
    theme = state.theme
    table = [(theme.spelled(keys), theme.spelled(what)) for keys, what in table]
    room = max(1, area.columns - 4)
    keys = max((width(keys) for keys, _ in table), default=0)
    whats = max((width(what) for _, what in table), default=0)
    columns = min(room, keys + 2 + whats)
    lines = _column(table, keys, columns, theme)
    half = min((room - _BETWEEN) // 2, keys + 2 + whats)
    if len(lines) > area.rows - 2 and half >= keys + 2 + min(_ENOUGH, whats):  # two columns
        columns, middle = half * 2 + _BETWEEN, (len(table) + 1) // 2
        lines, right = _column(table[:middle], keys, half, theme), _column(table[middle:], keys, half, theme)
        lines += [Line() for _ in right[len(lines) :]]
        for left, beside in zip(lines, right, strict=False):
            left.to(half + _BETWEEN).extend(beside)
    lines += [Line(), Line().add("Colors and marks", "title")]
    for mark, plain, style, what in LEGEND:
        meaning = fit(what, max(0, columns - keys - 2), theme.more)
        lines.append(Line().add(pad(theme.glyph(mark, plain), keys + 2), style).add(meaning, "calm"))
    paint_text(grid, area, state, "Help", lines, columns)


def _column(table: Table, keys: int, cells: int, theme: Theme) -> list[Line]:
    """Return the lines of one column: descriptions next to the keys, or below them if there is little space."""
    lines: list[Line] = []
    for name, what in table:
        if cells - keys - 2 >= min(_NARROW, width(what)):
            start, inset = Line().add(pad(name, keys + 2), "accent"), keys + 2
        else:
            lines.append(Line().add(fit(name, cells, theme.more), "accent"))
            start, inset = Line().add(" "), 1
        first, *more = wrapped_lines([(what, "calm")], max(2, cells - inset))  # 2: the widest character
        lines += [start.extend(first), *(Line().to(inset).extend(part) for part in more)]
    return lines
