"""Dialogs: a box in the middle of the screen, text that scrolls in it, the help, and what limits each GPU."""

from __future__ import annotations

from ....present.explanation import explained
from ....present.line import Line, wrapped_lines
from ....present.text import fit, pad, width
from ..layout import Area

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ....present.theme import Theme
    from ....screen.grid import Grid
    from ..state import State

    Table: TypeAlias = Sequence[tuple[str, str]]

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
